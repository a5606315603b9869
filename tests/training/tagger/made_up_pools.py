"""Small pools written by hand, so that the tests need no Faker."""

from training.tagger.pools import Pools, Region


def small_pools() -> Pools:
    """Return a country where the number comes first, one where it comes last, and one of which only names are known."""
    american = Region(
        "en_US",
        ("Dennis", "Maria", "Joan"),
        ("Boone", "Griffith", "O'Hara"),
        ("Jonathan Park", "Maple Avenue"),
        ("7631", "12"),
        ("64445", "10001"),
        ("Port Petertown", "Austin"),
        ("UT", "TX"),
        ("Griffith-Perez", "Johnson and Sons"),
        ("105-41-0502",),
        ("5089063608", "583-533-7406 x812"),
        ("GB91PRHL33740681241586",),
    )
    german = Region(
        "de_DE",
        ("Franz", "Jürgen"),
        ("Roßkopf", "Müller"),
        ("Lindenstraße", "Am Markt"),
        ("47", "3a"),
        ("06690", "10115"),
        ("Groß-Gerau", "Köln"),
        ("Hessen",),
        ("Dobes AG & Co. KG",),
        (),
        ("03778 35337",),
        ("DE12406812415868344978",),
    )
    turkish = Region(
        "tr_TR",
        ("İlqar",),
        ("Yildiz",),
        (),
        (),
        (),
        (),
        (),
        ("Sezer San.",),
        ("53915000856",),
        ("+90(636)0837783",),
        ("TR67",),
    )
    return Pools((american, german, turkish), ("4716402611454369", "378282246310005"), ("Midwife", "Engineer, land"))
