"""Each detector: what it finds, and similar texts that it ignores."""

# ruff: noqa: RUF001 (the letters are meant)

import pytest

from muniment.language.redaction import Redactor, redactor_of
from muniment.pack import Pack, builtin_pack


def _with_pages() -> Redactor:
    document = builtin_pack().document()
    document["policy_layer"]["guardrails"]["redaction_rules"].append({"name": "url", "detector": "url"})
    return redactor_of(Pack.model_validate(document))


EVERYTHING = _with_pages()


def found(text: str, detector: str) -> list[str]:
    return [text[one.start : one.end] for one in EVERYTHING.find(text) if one.name == detector]


HITS: dict[str, list[tuple[str, str]]] = {
    "card": [
        ("Pay with 4111111111111111.", "4111111111111111"),
        ("4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("5555-5555-5555-4444 was declined", "5555-5555-5555-4444"),
        ("amex 3782 822463 10005", "3782 822463 10005"),
        ("3056930902 5904 is no card, 30569309025904 is", "30569309025904"),
        ("2223003122003222", "2223003122003222"),
        ("JCB 3530111333300000", "3530111333300000"),
        ("row 5 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("**4111 1111 1111 1111**", "4111 1111 1111 1111"),
        ("5018 0000 0000 0009", "5018 0000 0000 0009"),
        # more between the groups than one space
        ("4111  1111  1111  1111", "4111  1111  1111  1111"),
        ("4111 1111\n1111 1111", "4111 1111\n1111 1111"),
        ("4111\r\n1111\r\n1111\r\n1111", "4111\r\n1111\r\n1111\r\n1111"),
        ("4111/1111/1111/1111, 12/27", "4111/1111/1111/1111"),
        ("row 5: [4111, 1111, 1111, 1111]", "4111, 1111, 1111, 1111"),
        ("3782/822463/10005", "3782/822463/10005"),
        ("cards: 4111,1111,1111,1111,5555", "4111,1111,1111,1111"),
        ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"),
        # short or of no known issuer: only where a card is spoken of
        ("my card number 630495060000 was stolen", "630495060000"),
        ("meine Kreditkarte 4222222222222", "4222222222222"),
        ("cc 0604 1234 5678 9015", "0604 1234 5678 9015"),
        ("card_number=4222222222222", "4222222222222"),
        ('"creditCard": "630495060000"', "630495060000"),
        ("630495060000 exp 12/27 cvv 123", "630495060000"),
        ("tarjeta 5018  0000  0000  0009", "5018  0000  0000  0009"),
        ("order,card\n77,630495060000", "630495060000"),
        # disguises
        ("４１１１１１１１１１１１１１１１", "４１１１１１１１１１１１１１１１"),
        ("4111\u200b1111\u200b1111\u200b1111", "4111\u200b1111\u200b1111\u200b1111"),
        ("4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a01111\u00a01111"),
        ("4111\u20131111\u20131111\u20131111", "4111\u20131111\u20131111\u20131111"),
        ("٤١١١١١١١١١١١١١١١", "٤١١١١١١١١١١١١١١١"),
    ],
    "iban": [
        ("My IBAN is GB82WEST12345698765432", "GB82WEST12345698765432"),
        ("gb82 west 1234 5698 7654 32 to another bank", "gb82 west 1234 5698 7654 32"),
        ("DE89 3704 0044 0532 0130 00, thanks", "DE89 3704 0044 0532 0130 00"),
        ("FR14-2004-1010-0505-0001-3M02-606", "FR14-2004-1010-0505-0001-3M02-606"),
        ("NO9386011117947", "NO9386011117947"),
        ("DE89.3704.0044.0532.0130.00.", "DE89.3704.0044.0532.0130.00"),
    ],
    "phone": [
        ("Call me on 541-714-1388", "541-714-1388"),
        ("office (541) 714-1388 x12", "(541) 714-1388 x12"),
        ("+44 20 7946 0958", "+44 20 7946 0958"),
        ("+44 (0)20 7946 0958 is ours", "+44 (0)20 7946 0958"),
        ("0049 30 901820", "0049 30 901820"),
        ("it was 03-3224-5000", "03-3224-5000"),
        ("it was 01 42 68 53 00", "01 42 68 53 00"),
        ("+1-202-555-0143", "+1-202-555-0143"),
        ("Telefon: 030 901820", "030 901820"),
        ("Tél. 01 42 68 53 00", "01 42 68 53 00"),
        ("téléphone 0142685300", "0142685300"),
        ("móvil 612 34 56 78", "612 34 56 78"),
        ("call 5417141388", "5417141388"),
        ("my number is 467 3395", "467 3395"),
        ("Phone:\n9472 7916", "9472 7916"),
        ("416 60 039 office", "416 60 039"),
        # in one piece, after words to call somebody
        ("dial 88213344 to cancel", "88213344"),
        ("please call me on 2302661", "2302661"),
        ("text the office 916264262", "916264262"),
        ("reach 22446176 for help", "22446176"),
        ("reach Ann Lee at 22446176", "22446176"),
        ("They're not answering at 9493 7477", "9493 7477"),
        ("you can call 33 93 31", "33 93 31"),
        ("erreichbar unter 66950763", "66950763"),
        ("callback number: 735231278", "735231278"),
        ("contact no 109124451", "109124451"),
        ("support line 78493 57074", "78493 57074"),
        ('{"phoneNumber": "8180725631"}', "8180725631"),
        ("the phone on record is 467 3395", "467 3395"),
        ("Your order is here. Ann 73 652543 ann@example.org", "73 652543"),
        ("the new number is 287-649-4133", "287-649-4133"),
        # other groupings and mixed separators
        ("reception (108)795-1050", "(108)795-1050"),
        ("messages to 08/47/80/68/06", "08/47/80/68/06"),
        ("phone +420-662-905/588", "+420-662-905/588"),
        ("T: 604/798 8340", "604/798 8340"),
        # a label or an extension right behind it
        ("541-714-1388cell", "541-714-1388"),
        ("Poland 97724\n51-16-34-25-Office", "51-16-34-25"),
        ("37326951550-Fax", "37326951550"),
        ("467 3395 x12 office", "467 3395 x12"),
        ("tel 5417141388;ext=22", "5417141388;ext=22"),
        # cells of tables
        ("name,phone,order\nAnn,88213344,20944113", "88213344"),
        ("order;birthday;cell\n77213344;2 May 1980;031 099 673", "031 099 673"),
        ("|mobile|order|\n|88213344|20944113|", "88213344"),
        ("Ann | 696-802 85 22 | ann@example.org", "696-802 85 22"),
        ("Karachi,16,+45 54 50 56 42,Ann", "+45 54 50 56 42"),
        ("Fax: 9498777106", "9498777106"),
        ("(07) 5331 0577", "(07) 5331 0577"),
        ("+４４ 20 7946 0958", "+４４ 20 7946 0958"),
        ("541\u2011714\u20111388", "541\u2011714\u20111388"),
    ],
    "email": [
        ("write to ada@example.com.", "ada@example.com"),
        ("<ada.lovelace+x@mail.example.co.uk>", "ada.lovelace+x@mail.example.co.uk"),
        ("Schreiben Sie an jörg@müller.de", "jörg@müller.de"),
        ("ada [at] example [dot] com", "ada [at] example [dot] com"),
        ("ada(at)example.com", "ada(at)example.com"),
        ("ada\u200b@example.com", "ada\u200b@example.com"),
        ("ada＠example．com", "ada＠example．com"),
        ("mailto:ada@example.com?subject=x", "ada@example.com"),
        ("ada@example.com.Thanks", "ada@example.com.Thanks"),
        ('write to "ada king"@example.com.', '"ada king"@example.com'),
        ("ada.king @ example.com", "ada.king @ example.com"),
        ("ada.king@ example.com", "ada.king@ example.com"),
        ("her e-mail is ada @ example.com", "ada @ example.com"),
        ("https://x.example/?to=ada%40example.com&x=1", "ada%40example.com"),
        ("ada&#64;example.com", "ada&#64;example.com"),
        ("ada&#x40;example.com", "ada&#x40;example.com"),
        ("ada&commat;example.com", "ada&commat;example.com"),
        ("ada\\u0040example.com", "ada\\u0040example.com"),
    ],
    "ip": [
        ("from 203.0.113.7 today", "203.0.113.7"),
        ("client|98.85.59.159|x", "98.85.59.159"),
        ("http://203.0.113.7:8080/", "203.0.113.7"),
        ("203.0.113.0/24", "203.0.113.0"),
        ("at 2001:db8::8a2e:370:7334.", "2001:db8::8a2e:370:7334"),
        ("fe80::1ff:fe23:4567:890a%eth0", "fe80::1ff:fe23:4567:890a%eth0"),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    ],
    "api_key": [
        ("use AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
        ("AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"[:35], "AIzaSy0123456789abcdefghijklmnopqrstuvw"),
        ("token ghp_" + "a1B2" * 9, "ghp_" + "a1B2" * 9),
        ("sk_" + "live_" + "a1B2c3D4e5F6", "sk_" + "live_" + "a1B2c3D4e5F6"),
        ("sk-proj-" + "a1B2c3D4" * 4, "sk-proj-" + "a1B2c3D4" * 4),
        ("xoxb-" + "123456789012-abcdefABCDEF", "xoxb-" + "123456789012-abcdefABCDEF"),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
        ),
        ("Authorization: Bearer a1b2c3d4e5f6g7h8", "Bearer a1b2c3d4e5f6g7h8"),
        ("Authorization: Basic YWRhOnNlY3JldDEyMw==", "Basic YWRhOnNlY3JldDEyMw=="),
        ("postgresql://ada:s3cret@host/db", "s3cret"),
        ("api_key = 'a1b2c3d4e5f6a7b8'", "a1b2c3d4e5f6a7b8"),
        ('"client_secret": "Zx81-Qw3r-Ty7u-Op0p"', "Zx81-Qw3r-Ty7u-Op0p"),
        ("password: hunter2", "hunter2"),
        ("Das Passwort ist Sommer2024!", "Sommer2024"),
        ("my password is Tr0ub4dor&3", "Tr0ub4dor&3"),
        ("password is: hunter2!", "hunter2"),
        ("password is : hunter2", "hunter2"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcd\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcd\n-----END RSA PRIVATE KEY-----",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA", "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA"),
    ],
    "national_id": [
        ("His social security number is 531-21-7351", "531-21-7351"),
        ("531 21 7351", "531 21 7351"),
        ("SSN 531217351", "531217351"),
        ("SSN: 531.21.7351", "531.21.7351"),
        ("my social is 953-21-7351", "953-21-7351"),
        ('{"social_security_number": "531217351"}', "531217351"),
        ("ssn|order\n531217351|531217352", "531217351"),
        ("SSN 531-21-7351, order 531217352", "531-21-7351"),
        ("ITIN 912-90-3456", "912-90-3456"),
        ("NINO AB 12 34 56 C", "AB 12 34 56 C"),
        ("ab123456c", "ab123456c"),
        ("DNI 12345678Z", "12345678Z"),
        ("X1234567L", "X1234567L"),
        ("RSSMRA80A01H501U", "RSSMRA80A01H501U"),
        ("2 95 10 99 126 111 93", "2 95 10 99 126 111 93"),
        ("756.9217.0769.85", "756.9217.0769.85"),
        ("CPF 390.533.447-05", "390.533.447-05"),
        ("12.531.909-2", "12.531.909-2"),
        ("880320-0016", "880320-0016"),
        ("131052-308T", "131052-308T"),
        ("11010519491231002X", "11010519491231002X"),
        ("85.07.30-033.28", "85.07.30-033.28"),
        ("PESEL 44051401359", "44051401359"),
        ("BSN: 111222333", "111222333"),
        ("Steuer-ID 36 574 261 809", "36 574 261 809"),
        ("NHS number 943 476 5870", "943 476 5870"),
        ("SIN 123-456-782", "123-456-782"),
        ("aadhaar 2341 2341 2346", "2341 2341 2346"),
        ("S1234567D", "S1234567D"),
        ("National ID number 8001015009087", "8001015009087"),
    ],
    "date_of_birth": [
        ("Ann Lee (b. 18/08/1968)", "18/08/1968"),
        ("born on 12 March 1985 in Oslo", "12 March 1985"),
        ("DOB: 1985-03-12", "1985-03-12"),
        ("DOB 03/12/85", "03/12/85"),
        ("date of birth 12.03.1985", "12.03.1985"),
        ("D.O.B. 12-03-1985", "12-03-1985"),
        ("Her birthday is March 3rd", "March 3rd"),
        ("birthdate: Mar 3, 1985", "Mar 3, 1985"),
        ("geboren am 12. März 1985", "12. März 1985"),
        ("Geburtsdatum: 12.03.1985", "12.03.1985"),
        ("née le 3 février 1985", "3 février 1985"),
        ("fecha de nacimiento: 3 de marzo de 1985", "3 de marzo de 1985"),
        ("1985-03-12 (date of birth)", "1985-03-12"),
        ("dob 19850312", "19850312"),
        ("DOB: １９８５-03-12", "１９８５-03-12"),
    ],
    "url": [
        ("see https://example.com/a?b=c.", "https://example.com/a?b=c"),
        ("(http://www.example.org/x_(y))", "http://www.example.org/x_(y)"),
        ("at www.example.org today", "www.example.org"),
        ("example.co.uk/path", "example.co.uk/path"),
    ],
}
NEAR_MISSES: dict[str, list[str]] = {
    "card": [
        "4111111111111112",  # wrong check digit
        "9999999999999995",  # no issuer
        "4222222222222",  # a short one that nobody calls a card
        "1700000000000",  # milliseconds
        "order 123456789012",
        "0.4111111111111111",
        "uuid 550e8400-e29b-41d4-a716-446655440000",
        "0000000000000000",
        "5018000000000009",  # a rare issuer, and not in groups
        "tracking 4111111111111111",
        "IT83 D302 3698 8986 1182 0066 584",  # within an account
        '"parcel": "4111111111111111"',
        "Sendungsnummer 4111111111111111",
        "no card, SSN 531-21-7351, voucher 630495060000",
        "card,order\n12,630495060000",
        "a4111111111111111",
        "[EMAIL] 4111 1111",
        "4111,1111,1111,1111,5555",  # out of a longer row
        "5018/0000/0000/0009",  # a rare issuer
        "4111, 1111, 1111, 1112",
    ],
    "iban": [
        "GB82WEST12345698765433",
        "DE89.3704.0044.0532.0130.01",
        "ZZ82WEST12345698765432",
        "GB82 WEST",
        "DE12 ordinary words here",
        "XGB82WEST12345698765432",
    ],
    "phone": [
        "order 541-714-1388",
        "invoice no 0123 456 789",
        "on 2024-05-04 10:30:00",
        "from 01.02.2003 to 04.05.2006",
        "version 10.15.7.1",
        "it cost 1 234 567 EUR",
        "$ 541.714.1388",
        "1234567",
        "20240504123000",
        "tracking 9472 7916",
        "between 2019 - 2020",
        # the words belong to another number
        "mobile: yes, order id: 88213344",
        "Tel. [PHONE], order 88213344",
        "MRN 04392663",
        "provider=86-5998383 tel=",
        "NPI 1902331624",
        "Kundennummer 030 901820",
        "device_id: 0170 1234567",
        "call log 5417141388",
        "call about claim 900524604",
        "API call 88213344 failed",
        "we want to reach 22446176 in May",
        "ssn=009 87 1744",
        "Wesley Lind (027.15.7575)",
        "on Jul 18 2034. 97 x 4 = 388",
        "we met on 12 05 24",
        "ref,amount\n88213344,12",
        "17151 2450 Crown Street",
        "ISBN 978-3-16-148410-0",
        "ORD-541-714-1388",
        "article 012-34567-89",
        "call:88213344",
        "012-345-678",
        "7.0049301234567",
        "ISBN-13 978-0-0111-2345-6",
        "call me at 10:30 on 2024-05-04",
        "we called 3 of 10 people",
        "coordinates 52.520008, 13.404954",
        "2,147,483,647 rows",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
    "email": [
        "@ada",
        "ada@",
        "ada@localhost",
        "react@18.2.0",
        "a @ b",
        "git@github.com:owner/repo",
        "ada@.com",
        "3 @ 5.00 each",
        "2.5 @ example.com",
        "lunch @ example.com",
        "we meet, e.g. @ example.com",
        "look us up @ www.example.com",
        "/%40scope%2Fpackage",
        "left-pad%401.2.3",
        '"a" @ 5.00',
    ],
    "ip": [
        "version 1.2.3.4",
        "v1.2.3.4",
        "Chrome/120.0.0.0",
        "1.2.3",
        "256.1.1.1",
        "01.84.17.61",
        "1.2.3.4.5",
        "at 12:30:45",
        "std::vector",
        "x[1::2]",
        "00:1a:2b:3c:4d:5e",
        "release 10.0.0.1-beta",
    ],
    "api_key": [
        "the password is required",
        "password: string",
        "the password is: required",
        "password: [API_KEY]",
        "token: null",
        "the secret: a good sauce",
        "api_key: <your key here>",
        "secret = os.environ['SECRET']"[:9] + "${SECRET}",
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "the bearer of this letter",
        "eyJabcdefghij.klmnopqrst.uvwxyz",  # decodes to nothing
        "basic understanding of things",
        "-----BEGIN PUBLIC KEY-----",
    ],
    "national_id": [
        "order 531-21-7351",
        "account number 531-21-7351",
        "Suite 680 36 4022 Oakridge Lane",
        "part no. 531-21-7351",
        "000-12-3456",
        "666-12-3456",
        "531-00-7351",
        "531217351",  # nine digits of anything
        "12345678A",
        "943 476 5870",  # an NHS number only by name
        "111222333",
        "44051401359",
        "390.533.447-06",
        "part AB123456E",
        "watch EM0320-59D",
        "2341 2341 2346",
        "880320-0017",
        "411111111111111162",  # a region that python-stdnum does not know
    ],
    "date_of_birth": [
        "on 2024-05-04",
        "born in Oslo",
        "born in 1985",
        "the deadline is 12 March 1985",
        "born on 31.02.1985",
        "stubborn 1985-03-12",
        "the Paris-born painter came on 12 March 1985",
        "her birthday party was lovely, we all met again on March 3",
        "Born in Oslo. Joined on 2020-01-01",
    ],
    "url": ["e.g. this", "file.py", "ada@example.com", "1.2.3", "U.S.A."],
}


@pytest.mark.rule("RED-2")
@pytest.mark.parametrize(
    ("detector", "text", "expected"),
    [(name, text, value) for name, cases in HITS.items() for text, value in cases],
)
def test_a_detector_finds_exactly_the_value(detector: str, text: str, expected: str) -> None:
    assert found(text, detector) == [expected]


@pytest.mark.rule("RED-2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("phone 467 3395 or 467 3396", ["467 3395", "467 3396"]),
        ("tel 467 3395 x12, 467 3396", ["467 3395 x12", "467 3396"]),
        ("phone 467 3395, size 4673396", ["467 3395"]),
        ("cell: 467 3395\nmember_no: 75-7165-09", ["467 3395"]),
        ("phone,account\n46733951,46733952\n46733953,46733954", ["46733951", "46733953"]),
    ],
)
def test_words_announce_the_numbers_of_their_list_or_column_and_no_others(text: str, expected: list[str]) -> None:
    assert found(text, "phone") == expected


@pytest.mark.rule("RED-2")
@pytest.mark.parametrize(("detector", "text"), [(name, text) for name, texts in NEAR_MISSES.items() for text in texts])
def test_a_detector_leaves_alone_what_only_looks_like_it(detector: str, text: str) -> None:
    assert found(text, detector) == []
