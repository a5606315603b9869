"""Phrases read as one word, and contractions written out."""

REWRITES: dict[str, str] = {
    "no one": "nobody", "close to": "near", "next to": "near", "far away from": "far_from", "far from": "far_from",
    "in front of": "in_front_of", "a lot of": "many", "lots of": "many", "plenty of": "many", "in order to": "to",
    "as well as": "and", "going to": "will", "used to": "used_to", "able to": "can", "have to": "must",
    "has to": "must", "had to": "was must", "needed to": "was must", "need to": "must", "needs to": "must", "required to": "must",
    "per cent": "percent", "right now": "now", "at the moment": "now", "at present": "now", "no longer": "no_longer",
    "not any more": "no_longer", "not anymore": "no_longer", "any longer": "any_more", "at least": "at_least",
    "at most": "at_most", "up to": "at_most", "no more than": "at_most", "not more than": "at_most",
    "no less than": "at_least", "not less than": "at_least", "no fewer than": "at_least", "more than": "more_than",
    "less than": "less_than", "fewer than": "less_than", "a maximum of": "at_most", "a minimum of": "at_least",
    "maximum of": "at_most", "minimum of": "at_least", "other than": "except", "apart from": "except",
    "such as": "like",
    "each other": "each_other", "one another": "each_other", "e mail": "email", "text message": "sms",
    "text messages": "sms", "phone call": "phone", "phone calls": "phone", "due to": "because", "because of": "because",
    "in spite of": "despite", "instead of": "instead_of", "rather than": "instead_of", "not only": "only_also",
    "kind of": "", "sort of": "", "type of": "", "in addition to": "and",
   
   
   
   
   
   
   
   
   
   
   
    "in case of": "if", "in the event of": "if", "provided that": "if",
    "as long as": "if", "only if": "if", "only when": "if", "unless": "unless", "with the exception of": "except",
    "is free of charge": "free",
    "free of charge": "free", "of age": "", "years old": "years", "year old": "years", "years-old": "years",
    "in the process of": "", "is in charge of": "manages", "every day": "daily", "every week": "weekly",
    "every month": "monthly", "every year": "yearly", "once a week": "weekly", "once a month": "monthly",
    "once a year": "yearly", "once a day": "daily", "per year": "yearly", "per month": "monthly", "per week": "weekly",
    "a year": "yearly", "swimming pool": "pool", "laptop computer": "laptop", "cell phone": "smartphone",
    "in favor of": "for", "in favour of": "for", "according to": "according_to", "along with": "with",
    "at all": "", "of course": "", "in fact": "", "for example": "", "a few": "several", "a couple of": "several",
    "a bit": "", "a little bit": "", "only a": "only_a", "two of": "two", "one of": "one_of", "some of": "",
    "wide receiver": "wide_receiver", "more or less": "about", "or more": "or_more",
    "or less": "or_less", "or later": "or_more", "and above": "or_more", "or fewer": "or_less", "noone": "nobody",
    "pros and cons": "advantages and disadvantages", "pros": "advantages",
    "would like": "want", "'d like": "want", "wish to": "want", "wishes to": "wants", "wished to": "wanted",
    "would prefer": "prefer", "'d prefer": "prefer", "would rather": "prefer", "'d rather": "prefer",
    "has a preference for": "prefers", "have a preference for": "prefer", "had a preference for": "preferred",
    "is obliged to": "must", "are obliged to": "must", "is required to": "must", "are required to": "must",
    "was required to": "was must", "were required to": "were must", "has got to": "must", "have got to": "must",
    "is permitted to": "is allowed to", "are permitted to": "are allowed to", "is capable of": "can", "are capable of": "can",
    "has the ability to": "can", "have the ability to": "can", "is unable to": "can not", "are unable to": "can not",
    "was unable to": "was not can", "were unable to": "were not can", "unable to": "not can",
    "is fond of": "likes", "are fond of": "like", "is keen on": "likes",
    "is located in": "is in", "are located in": "are in", "is situated in": "is in",
    "is based in": "based in", "is headquartered in": "based in", "are based in": "based in",
    "gets in touch with": "contacts", "get in touch with": "contact", "got in touch with": "contacted",
    "is in touch with": "contacts", "takes place": "happens", "take place": "happen", "took place": "happened",
    "makes use of": "uses", "make use of": "use", "made use of": "used", "takes care of": "handles",
    "take care of": "handle", "took care of": "handled",
    "gives back": "returns", "give back": "return", "gave back": "returned", "sends back": "returns",
    "send back": "return", "sent back": "returned",
    "with regard to": "about", "with respect to": "about", "in regard to": "about", "as regards": "about",
    "prior to": "before", "ahead of": "before", "subsequent to": "after", "at the latest by": "by", "no later than":
    "by", "not later than": "by", "by means of": "by", "in the course of": "during", "in the middle of": "in",
    "as soon as possible": "asap", "in the near future": "soon", "all of the": "all", "all of": "all",
    "each of the": "each", "most of the": "most", "both of": "both", "the majority of": "most", "a number of":
    "several", "a great deal of": "many", "a large number of": "many", "an amount of": "", "the amount of": "",
    "the fact that": "that", "it is true that": "", "please note that": "", "note that": "", "for free": "free",
    "at no cost": "free", "at no charge": "free", "without charge": "free", "free of cost": "free",
    "on a daily basis": "daily", "on a weekly basis": "weekly", "on a monthly basis": "monthly",
    "on a yearly basis": "yearly", "on an annual basis": "yearly", "on a regular basis": "regularly",
    "each day": "daily", "each week": "weekly", "each month": "monthly", "each year": "yearly",
    "web site": "website", "web page": "webpage", "health care": "healthcare", "e book": "ebook",
    "credit cards": "credit_card", "zip code": "postcode", "postal code": "postcode", "log in": "login",
    "sign in": "login", "log on": "login", "sign up": "register", "signs up": "registers", "signed up": "registered",
    "find out": "learn", "finds out": "learns", "found out": "learned", "carry out": "perform", "carries out":
    "performs", "carried out": "performed", "look for": "seek", "looks for": "seeks", "looking for": "seeking",
    "hand over": "deliver", "hands over": "delivers", "hold off": "wait", "put off": "postpone", "puts off":
    "postpones", "call off": "cancel", "calls off": "cancels", "called off": "cancelled", "turn down": "reject",
    "turns down": "rejects", "turned down": "rejected", "point out": "mention", "points out": "mentions",
    "fill out": "complete", "fill in": "complete", "give up": "quit", "gives up": "quits", "gave up": "quit",
    "get rid of": "remove", "gets rid of": "removes", "got rid of": "removed", "deal with": "handle", "deals with":
    "handles", "cope with": "handle", "copes with": "handles", "go up": "rise", "goes up": "rises", "went up": "rose",
    "go down": "fall", "goes down": "falls", "went down": "fell", "come back": "return", "comes back": "returns",
    "came back": "returned", "go back": "return", "goes back": "returns", "went back": "returned",
}  # fmt: skip

CONTRACTIONS: dict[str, str] = {
    "can't": "cannot", "won't": "will not", "shan't": "will not", "ain't": "is not", "let's": "let us",
    "cannot": "can not", "it's": "it is", "that's": "that is", "there's": "there is", "what's": "what is",
    "who's": "who is", "where's": "where is", "he's": "he is", "she's": "she is", "how's": "how is",
    "here's": "here is",
}  # fmt: skip
ENDINGS: dict[str, str] = {"'re": "are", "'m": "am", "'ll": "will", "'ve": "have", "'d": "'d"}
