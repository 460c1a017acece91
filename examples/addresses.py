"""Labelled postal addresses of ten countries, made up: ``make_addresses(1000)`` gives tokens and IOB2 labels.

Names of people, streets and towns are put together from parts (Lang+ford Road, Linden+weg), so that every new address has
words never seen before; a town, a family and a street may share a name, as they do. Run the file to see some.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

Field = tuple[str, str]  # type ("" for punctuation between fields) and text
Lines = list[list[Field]]

GIVEN = {
    "en": "James|Mary|Oliver|Emma|Noah|Grace|Henry|Ruby|Thomas|Alice|Samuel|Chloe|Jack|Lucy|Daniel|Ella",
    "de": "Hans|Anna|Jürgen|Greta|Lukas|Monika|Felix|Ursula|Matthias|Heike|Jörg|Lena|Karl|Sabine",
    "fr": "Jean|Marie|Luc|Camille|François|Élodie|Pierre|Chloé|René|Margaux|Antoine|Sylvie|Hugo|Inès",
    "nl": "Jan|Sanne|Pieter|Femke|Willem|Lotte|Daan|Maartje|Kees|Anouk|Bram|Fleur",
    "es": "José|María|Carlos|Lucía|Javier|Carmen|Miguel|Pilar|Andrés|Elena|Álvaro|Rocío",
    "it": "Marco|Giulia|Luca|Francesca|Paolo|Chiara|Matteo|Elena|Giorgio|Silvia|Nicolò|Paola",
    "ja": "Hiroshi|Yuki|Takashi|Sakura|Kenji|Haruka|Satoshi|Aiko|Daisuke|Naomi|Ren|Mei",
    "pt": "João|Ana|Pedro|Beatriz|Lucas|Mariana|Rafael|Júlia|Thiago|Camila|Antônio|Luíza",
    "pl": "Jan|Anna|Piotr|Katarzyna|Tomasz|Agnieszka|Paweł|Zofia|Michał|Małgorzata|Łukasz|Ewa",
}
# First and second parts of family names and towns.
ROOTS = {
    "en": "Ash|Black|Brad|Clay|Hart|Har|Lang|Mor|Nor|Thorn|West|Win|Wood|Stan|Hal|Carl|Red|Brook|Mill|Rock|Elm|Graf|Ken",
    "de": "Linden|Eichen|Rosen|Stein|Berg|Kirch|Mühl|Garten|Sonnen|Wald|Bach|Neu|Alten|Ober|Königs|Marien|Fried|Hohen",
    "fr": "Beau|Mont|Roche|Clair|Bois|Vau|Grand|Cham|Font|Bel|Haute|Ver|Mar|Cour|Lau|Ange",
    "nl": "Linden|Molen|Kerk|Ooster|Wester|Noorder|Nieuwe|Groene|Zand|Haar|Vlier|Amstel|Berken|Breu|Veen|Zuider",
    "es": "Val|Monte|Torre|Casa|Fuente|Alba|Mira|Peña|Robre|Cas|Guada|Sala|Arro|Bena",
    "it": "Monte|Castel|Val|Pietra|Bella|Rocca|Fonte|Campo|Villa|Serra|Bor|Mar|Lu|Cas",
    "ja": "Yama|Kawa|Mori|Taka|Naka|Matsu|Fuji|Kita|Nishi|Hira|Oka|Ishi|Shima|Hashi|Uchi",
    "pt": "Monte|Campo|Vila|Serra|Ribeira|Pal|Itapo|Jacar|Guara|Bel|Flor|Mar|Cara|Uru",
    "pl": "Kwiat|Lip|Brzoz|Polan|Dąbr|Jawor|Kalin|Wierzb|Król|Zamk|Sosn|Górn|Olsz|Mał",
}
TOWN = {
    "en": "ton|ford|bury|ham|port|ville|field|burgh|dale|mouth",
    "de": "burg|berg|heim|hausen|stadt|dorf|furt|au|feld|kirchen",
    "fr": "ville|bourg|court|mont|vais|tagne|lac|nières",
    "nl": "dam|drecht|wijk|hoven|veen|sluis|burg|dijk|lo|meer",
    "es": "lejos|verde|hermosa|blanca|dolid|redo|jara|vente",
    "it": "franco|vecchio|nuovo|bruna|lupo|mare|gnano|rotto",
    "ja": "saki|moto|gawa|yama|hara|da|mura|to",
    "pt": "polis|lândia|grande|verde|nópolis|raba|tuba|guaçu",
    "pl": "ów|owo|ice|in|no|owiec|ówka",
}
FAMILY = {
    "en": "man|son|well|ley|worth|wood|ford|ton|er|by",
    "de": "mann|er|hauer|meier|inger|bauer|feld|berg",
    "fr": "ier|ard|eau|in|ont|elle|and|ert",
    "nl": "stra|sma|man|huis|ink|berg|veld|mans",
    "es": "ez|era|al|ido|ano|ero|ales|osa",
    "it": "ini|etti|elli|ano|oni|ucci|ese|ari",
    "ja": "moto|da|gawa|guchi|no|mura|shita|zaki",
    "pt": "eira|ado|ães|es|al|ino|eiro|osa",
    "pl": "ski|owski|iak|ek|czyk|icz|owicz|arz",
}
COUNTRY = {
    "US": "USA|United States|United States of America|U.S.A.|US",
    "GB": "UK|United Kingdom|Great Britain|England|GB|Scotland",
    "DE": "Germany|Deutschland|DE|Allemagne",
    "FR": "France|FRANCE|FR|Frankreich",
    "NL": "Netherlands|The Netherlands|Nederland|NL|Holland",
    "ES": "Spain|España|ES",
    "IT": "Italy|Italia|IT|Italien",
    "JP": "Japan|JAPAN|JP",
    "BR": "Brazil|Brasil|BR",
    "PL": "Poland|Polska|PL",
}
LEGAL = {
    "en": "Inc.|LLC|Ltd|& Co.|Group|Corp.|Partners",
    "de": "GmbH|AG|& Söhne|KG|GmbH & Co. KG|e.V.",
    "fr": "SA|SARL|& Fils|SAS|et Cie",
    "nl": "B.V.|N.V.|& Zonen|Groep",
    "es": "S.A.|S.L.|e Hijos|y Cía.",
    "it": "S.p.A.|S.r.l.|& Figli|Snc",
    "ja": "K.K.|Co., Ltd.|Corporation|Shoten",
    "pt": "Ltda.|S.A.|& Filhos|Comércio",
    "pl": "Sp. z o.o.|S.A.|i Synowie",
}
TRADE = {
    "en": "Books|Motors|Bakery|Consulting|Foods|Hardware|Dental Care|Street Wear|Logistics",
    "de": "Buchhandlung|Autohaus|Bäckerei|Maschinenbau|Apotheke|Gasthof zum Bären|Verlag",
    "fr": "Librairie|Garage|Boulangerie|Transports|Pharmacie de la Place|Hôtel du Parc",
    "nl": "Boekhandel|Garage|Bakkerij|Bouwbedrijf|Apotheek|Fietsen",
    "es": "Librería|Talleres|Panadería|Transportes|Farmacia|Hotel La Plaza",
    "it": "Libreria|Officine|Panificio|Trasporti|Farmacia|Trattoria della Piazza",
    "ja": "Denki|Shokuhin|Kensetsu|Seisakusho|Books",
    "pt": "Livraria|Oficina|Padaria|Transportes|Farmácia|Mercado Central",
    "pl": "Księgarnia|Warsztat|Piekarnia|Transport|Apteka",
}
US_STATES = "CA|NY|TX|WA|OH|NC|Georgia|Ohio|New York|Washington|Texas|N. Carolina|California|MA|VA|Virginia|Oregon|OR|IN|ME"
UK_COUNTIES = "Kent|Surrey|Essex|West Sussex|Norfolk|Devon|North Yorkshire|Lancs|Herts|Cornwall|Fife"
ES_PROVINCES = "Madrid|Sevilla|Toledo|Valencia|La Coruña|Granada|León|Barcelona|Burgos"
JA_PREFECTURES = "Kanagawa|Chiba|Nagano|Hyogo|Aichi|Fukuoka|Gifu|Shizuoka"
NOUNS = {
    "fr": "République|Gare|Église|Moulin|Fontaine|Liberté|Victoire|Paix|Pont|Lilas|Acacias|Château|11 Novembre|8 Mai 1945",
    "es": "Constitución|Sol|Mayor|Real|Rosario|Olmo|Iglesia|Fuente|Paz|2 de Mayo|Cruz|Molino",
    "it": "Roma|Garibaldi|Mazzini|Verdi|XX Settembre|Dante Alighieri|Libertà|Risorgimento|IV Novembre|Torino|Mulini",
    "pt": "Flores|Palmeiras|15 de Novembro|Liberdade|Acácias|Sete de Setembro|Independência|Laranjeiras",
    "pl": "3 Maja|Mickiewicza|Jana Pawła II|Kościuszki|Armii Krajowej|Słowackiego|1 Maja",
}


class _Writer:
    """Draws parts of addresses; everything random comes from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, options: str | list[str]) -> str:
        return self.rng.choice(options.split("|") if isinstance(options, str) else options)

    def digits(self, pattern: str) -> str:
        """Fill a pattern: 9 is a digit, 8 a digit but zero, A a letter."""
        fill = {"9": "0123456789", "8": "123456789", "A": "ABCDEFGHJKLMNPRSTUWXY"}
        return "".join(self.rng.choice(fill[c]) if c in fill else c for c in pattern)

    def word(self, language: str, ends: dict[str, str]) -> str:
        return _join(self.pick(ROOTS[language]), self.pick(ends[language]))

    def town(self, language: str) -> str:
        return self.word(language, TOWN)

    def family(self, language: str) -> str:
        return self.word(language, FAMILY)

    def number(self) -> str:
        number = str(self.rng.randint(1, self.rng.choice([20, 99, 250, 2999])))
        if self.chance(0.12):
            number += self.pick("a|b|A|C|bis")
        return f"{number}-{int(re.sub('[^0-9]', '', number)) + 2}" if self.chance(0.06) else number

    def person(self, language: str) -> str:
        given, family = self.pick(GIVEN[language]), self.family(language)
        if self.chance(0.15):
            given = f"{given[0]}."
        if self.chance(0.15):
            given += f" {self.pick(GIVEN[language])[0]}."
        if language in ("es", "pt") and self.chance(0.5):
            family += f" {self.family(language)}"
        if language == "nl" and self.chance(0.3):
            family = self.pick("van der |van |de ") + family
        titles = {"en": "Mr.|Mrs|Dr.", "de": "Herr|Frau|Dr.", "fr": "M.|Mme", "es": "Sr.|Dña.", "it": "Sig.|Dott.ssa"}
        if language in titles and self.chance(0.12):
            given = f"{self.pick(titles[language])} {given}"
        return f"{family}, {given}" if self.chance(0.05) else f"{given} {family}"

    def company(self, language: str) -> str:
        trade, legal = self.pick(TRADE[language]), self.pick(LEGAL[language])
        name = self.pick([self.family(language), self.town(language)])
        if language in ("fr", "es", "it", "pt", "pl") or (language == "de" and self.chance(0.5)):
            name, trade = trade, name
        return self.pick([f"{name} {trade}", f"{name} {trade} {legal}", f"{name} {legal}"])

    def addressee(self, language: str) -> Lines:
        """Who gets the letter: a person, a company, or one at the other."""
        person, company = [("NAME", self.person(language))], [("COMPANY", self.company(language))]
        if self.chance(0.12):
            person = [("", self.pick("c/o|Attn:|z.Hd.|p/a")), *person]
        return self.rng.choices([[person], [company], [company, person], [person, company], []], [50, 22, 8, 5, 15])[0]


def _join(root: str, end: str) -> str:
    vowels = "aeiouyáéíóúąęö"
    if root[-1] in vowels and end[0] in vowels:
        root = root[:-1]
    return root[:-1] + end if root[-1] == end[0] else root + end


def _us(w: _Writer) -> Lines:
    kind = w.pick("Street|St.|St|Avenue|Ave|Ave.|Road|Rd|Drive|Dr.|Lane|Ln|Blvd|Boulevard|Court|Way|Hwy|Plaza")
    name = w.pick(
        [w.family("en"), w.town("en"), w.pick("Main|Oak|Park|2nd|5th|42nd|Washington|Lake|Paris|Church|Martin Luther King")]
    )
    street = f"{w.pick('N|S|E|West|North')} {name} {kind}" if w.chance(0.15) else f"{name} {kind}"
    first = [("NUMBER", w.number()), ("STREET", street)]
    if w.chance(0.35):
        unit = w.pick("Apt|Apt.|Suite|Ste|Unit|#|Floor|Rm") + " " + w.digits(w.pick("8|89|899|8A|A"))
        first += ([("", ",")] if w.chance(0.5) else []) + [("UNIT", unit)]
    if w.chance(0.1):
        first = [("POBOX", w.pick("PO Box|P.O. Box|Box") + " " + w.digits(w.pick("899|8999|89")))]
    comma = [("", ",")] if w.chance(0.7) else []
    town = w.pick(
        [w.town("en"), w.town("en"), w.pick("Fort|Lake|New|St.|Mount") + " " + w.town("en"), "New York", "Washington"]
    )
    last = [("CITY", town), *comma, ("REGION", w.pick(US_STATES)), ("POSTCODE", w.digits(w.pick("99999|99999|99999-9999")))]
    return [*w.addressee("en"), first, last]


def _gb(w: _Writer) -> Lines:
    kind = w.pick("Street|St|Road|Rd|Lane|Close|Gardens|Terrace|Mews|Crescent|Hill|Green|Way|Row")
    name = w.pick([w.family("en"), w.town("en"), w.pick("High|Church|Station|Victoria|Mill|Queens|London|York|The")])
    first = [("NUMBER", w.number()), ("STREET", f"{name} {kind}")]
    if w.chance(0.25):
        first = [("UNIT", w.pick("Flat|Unit|Apartment|Flat No.") + " " + w.digits(w.pick("8|89|8A|A"))), ("", ","), *first]
    lines = [*w.addressee("en")]
    if w.chance(0.15):
        lines.append([("UNIT", f"{w.family('en')} {w.pick('House|Court|Cottage|Lodge|Barn')}")])
        if w.chance(0.4):
            first = [("STREET", f"{name} {kind}")]
    lines.append(first)
    if w.chance(0.25):
        lines.append([("DISTRICT", w.pick([w.town("en"), f"{w.pick('Upper|Lower|Little|Great')} {w.town('en')}"]))])
    town = w.pick([w.town("en"), w.town("en"), "London", f"{w.town('en')}-on-{w.pick('Sea|Thames|Trent')}"])
    code = w.digits(w.pick("AA8 9AA|A8 8AA|AA89 9AA|A89 8AA|AA8A 8AA"))
    tail = [[("CITY", town)], [("REGION", w.pick(UK_COUNTIES))], [("POSTCODE", code)]]
    if w.chance(0.5):
        del tail[1]
    return [*lines, [field for line in tail for field in line]] if w.chance(0.4) else [*lines, *tail]


def _de(w: _Writer) -> Lines:
    ending = w.pick("straße|strasse|str.|weg|allee|gasse|platz|ring|damm|ufer|hof")
    root = w.pick([w.pick(ROOTS["de"]), w.town("de"), w.family("de"), w.pick("Haupt|Bahnhof|Goethe|Schiller|Dorf|Post")])
    street = root + ending
    if w.chance(0.25):
        street = w.pick("Am|Im|An der|Auf dem|Unter den|Zum") + " " + w.pick([w.family("de"), w.pick(ROOTS["de"])])
    elif w.chance(0.15):
        street = f"{w.pick(GIVEN['de'])}-{w.family('de')}-{ending.capitalize()}"
    first = [("STREET", street), ("NUMBER", w.number())]
    if w.chance(0.1):
        first += [("UNIT", w.pick("2. OG|EG|Hinterhaus|Whg. 12|Büro 4|1. Stock links"))]
    if w.chance(0.08):
        first = [("POBOX", "Postfach " + w.digits(w.pick("89 99|8999|89 99 99")))]
    town = w.town("de")
    if w.chance(0.2):
        town = w.pick([f"{w.pick('Bad|Sankt|Groß')} {town}", f"{town} am {w.pick('Main|Rhein|See')}", f"{town} a. d. Donau"])
    return [*w.addressee("de"), first, [("POSTCODE", w.pick(["", "", "", "D-"]) + w.digits("99999")), ("CITY", town)]]


def _romance_street(w: _Writer, language: str, kinds: str, links: str) -> str:
    name = w.pick([w.pick(NOUNS[language]), f"{w.pick(GIVEN[language])} {w.family(language)}", w.town(language)])
    link = w.pick(links) + " " if w.chance(0.5) else ""
    return f"{w.pick(kinds)} {link}{name}"


def _fr(w: _Writer) -> Lines:
    kinds = "rue|Rue|r.|avenue|Av.|boulevard|Bd|place|chemin|impasse|allée|quai|route"
    comma = [("", ",")] if w.chance(0.3) else []
    first = [("NUMBER", w.number()), *comma, ("STREET", _romance_street(w, "fr", kinds, "de la|du|des|de|de l'"))]
    lines = w.addressee("fr")
    if w.chance(0.15):
        lines.append([("UNIT", w.pick("Bât. B|Appt 12|Appartement 4|Étage 3|Résidence " + w.town("fr") + "|Esc. 2"))])
    if w.chance(0.08):
        first = [("POBOX", w.pick("BP|B.P.|CS") + " " + w.digits(w.pick("89|899|89999")))]
    town = w.town("fr")
    if w.chance(0.35):
        town = w.pick(
            [f"Saint-{w.pick(GIVEN['fr'])}", f"{town}-sur-{w.pick('Loire|Seine|Mer')}", f"Le {town}", f"{town} Cedex 3"]
        )
    return [*lines, first, [("POSTCODE", w.pick(["", "", "", "F-"]) + w.digits("99999")), ("CITY", town)]]


def _nl(w: _Writer) -> Lines:
    root = w.pick([w.pick(ROOTS["nl"]), w.family("nl"), w.pick(GIVEN["nl"]), w.town("nl")])
    street = root + w.pick("straat|laan|weg|gracht|plein|kade|dijk|pad|singel")
    if w.chance(0.15):
        street = w.pick("Burg. |Prof. |Van |Laan van ") + street
    first = [("STREET", street), ("NUMBER", w.number())]
    if w.chance(0.2):
        first.append(("UNIT", w.pick("II|hs|3 hoog|bis|A|-2")))
    if w.chance(0.08):
        first = [("POBOX", "Postbus " + w.digits(w.pick("899|89999")))]
    town = w.pick([w.town("nl"), w.town("nl"), f"{w.pick('Den|Sint|Nieuw')} {w.town('nl')}"])
    return [*w.addressee("nl"), first, [("POSTCODE", w.digits(w.pick("8999 AA|8999AA|8999 AA|NL-8999 AA"))), ("CITY", town)]]


def _es(w: _Writer) -> Lines:
    kinds = "Calle|C/|Avenida|Avda.|Plaza|Pza.|Paseo|Camino|Ctra.|Ronda"
    first = [("STREET", _romance_street(w, "es", kinds, "de la|de|del|de los"))]
    first += [("", ",")] if w.chance(0.6) else []
    first += [("NUMBER", w.pick(["", "", "nº ", "núm. "]) + w.number())]
    if w.chance(0.45):
        first += [("", ",")] if w.chance(0.7) else []
        first += [("UNIT", w.pick("8º|1º|2.º|Bajo|Piso 3|esc. B") + " " + w.pick("A|B|izq.|dcha.|puerta 4|2ª"))]
    town = w.pick([w.town("es"), w.town("es"), f"{w.pick('San|Santa|Villa|Puerto')} {w.town('es')}", w.pick(ES_PROVINCES)])
    last = [("POSTCODE", w.digits("99999")), ("CITY", town)]
    if w.chance(0.45):
        province = w.pick(ES_PROVINCES)
        last += [("", "("), ("REGION", province), ("", ")")] if w.chance(0.5) else [("", ","), ("REGION", province)]
    return [*w.addressee("es"), first, last]


def _it(w: _Writer) -> Lines:
    kinds = "Via|via|V.|Viale|V.le|Piazza|P.zza|Corso|C.so|Largo|Vicolo|Strada"
    first = [("STREET", _romance_street(w, "it", kinds, "della|dei|di|del"))]
    first += ([("", ",")] if w.chance(0.5) else []) + [("NUMBER", w.pick(["", "", "n. "]) + w.number())]
    if w.chance(0.2):
        first.append(("UNIT", w.pick("int. 4|Scala B|piano 2|int. 12|sc. A")))
    last = [("POSTCODE", w.pick(["", "", "", "I-"]) + w.digits("99999")), ("CITY", w.town("it"))]
    if w.chance(0.65):
        code = w.pick("MI|RM|TO|NA|FI|BO|VE|PA|GE")
        last += [("REGION", code)] if w.chance(0.5) else [("", "("), ("REGION", code), ("", ")")]
    return [*w.addressee("it"), first, last]


def _jp(w: _Writer) -> Lines:
    number = w.digits(w.pick("8-8-8|8-89-8|8-8|8-8-89"))
    area = w.town("ja") + w.pick(["-cho", "cho", "", "-machi", " Minami", "-dori"])
    city = w.town("ja") + w.pick(["-shi", "-ku", "", " City", "-ku"])
    region = w.pick([w.pick("Tokyo|Tokyo-to|Osaka|Kyoto"), w.pick(JA_PREFECTURES) + w.pick(["-ken", "", " Pref."])])
    code = w.pick(["", "", "〒"]) + w.digits("899-9999")
    unit = [("UNIT", f"{w.family('ja')} {w.pick('Bldg.|Mansion|Heights')} {w.digits(w.pick('8F|899|89F'))}")]
    if w.chance(0.3):
        lines: Lines = [[("POSTCODE", code)], [("REGION", region), ("CITY", city), ("STREET", area), ("NUMBER", number)]]
        return [*lines, *([unit] if w.chance(0.3) else []), *w.addressee("ja")]
    street = [("NUMBER", number), ("STREET", area)]
    tail = [("CITY", city), ("", ","), ("REGION", region), ("POSTCODE", code)]
    return [*w.addressee("ja"), *([unit] if w.chance(0.3) else []), street, tail]


def _br(w: _Writer) -> Lines:
    first = [("STREET", _romance_street(w, "pt", "Rua|R.|Avenida|Av.|Travessa|Praça|Alameda|Rodovia", "das|dos|da|de"))]
    first += [("", ",")] * w.chance(0.8) + [("NUMBER", w.pick(["", "", "nº "]) + w.number())]
    if w.chance(0.35):
        first += [
            ("", w.pick([",", "-"])),
            ("UNIT", w.pick("Apto|Apto.|Sala|Bloco B Apto|Casa|Conj.") + " " + w.digits(w.pick("89|899|8"))),
        ]
    lines = [*w.addressee("pt"), first]
    if w.chance(0.5):
        lines.append(
            [("DISTRICT", w.pick([f"{w.pick('Jardim|Vila|Parque|Alto da')} {w.town('pt')}", "Centro", w.town("pt")]))]
        )
    town = w.pick([w.town("pt"), w.town("pt"), "São Paulo", f"São {w.pick(GIVEN['pt'])} do {w.town('pt')}"])
    place = [
        ("CITY", town),
        ("", w.pick(["-", "/", ","])),
        ("REGION", w.pick("SP|RJ|MG|BA|PR|São Paulo|Bahia|Minas Gerais|RS")),
    ]
    code = ("POSTCODE", w.pick(["", "", "CEP "]) + w.digits(w.pick("99999-999|99999999|99.999-999")))
    return [*lines, [code, *place]] if w.chance(0.3) else [*lines, place, [code]]


def _pl(w: _Writer) -> Lines:
    root = w.pick(ROOTS["pl"])
    street = w.pick([_join(root, "owa"), _join(root, "ska"), w.pick(NOUNS["pl"]), w.family("pl") + "ego", _join(root, "na")])
    if w.chance(0.75):
        street = w.pick("ul.|ul|al.|pl.|os.|Aleja|Ul.") + " " + street
    first = [("STREET", street)]
    if w.chance(0.3):
        first += [("NUMBER", w.number()), ("", "/"), ("UNIT", w.digits(w.pick("8|89")))]
    else:
        first.append(("NUMBER", w.number()))
        if w.chance(0.2):
            first.append(("UNIT", w.pick("m.|lok.|lokal|p.") + " " + w.digits("89")))
    if w.chance(0.06):
        first = [("POBOX", "skr. poczt. " + w.digits("899"))]
    town = w.pick([w.town("pl"), w.town("pl"), f"{w.town('pl')} {w.pick('Wielki|Dolny|Górny')}", "Nowy " + w.town("pl")])
    return [*w.addressee("pl"), first, [("POSTCODE", w.digits("99-999")), ("CITY", town)]]


LAYOUTS: dict[str, Callable[[_Writer], Lines]] = {
    **{"US": _us, "GB": _gb, "DE": _de, "FR": _fr, "NL": _nl},
    **{"ES": _es, "IT": _it, "JP": _jp, "BR": _br, "PL": _pl},
}
_TOKEN = re.compile(r"[^\W_]+(?:[.'’\-/º][^\W_]+)*[.º'’]?|\S")


def make_addresses(
    n: int, random_state: int = 0, typos: float = 0.05, missing: float = 0.1
) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens and IOB2 labels of `n` addresses; the same ones for the same `random_state`.

    Parameters
    ----------
    n : int
    random_state : int
    typos : float
        Share of words in which a letter is lost, doubled, replaced or swapped with the next.
    missing : float
        Probability that a part of the address (the postcode, say) is left out.

    Returns
    -------
    tokens, labels : lists of lists of str
        Labels are ``O`` (punctuation between parts; ``|`` is the end of a line), or ``B-`` and ``I-`` with one of NAME,
        COMPANY, STREET, NUMBER, UNIT, POBOX, DISTRICT, POSTCODE, CITY, REGION, COUNTRY.
    """
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    for name, share in (("typos", typos), ("missing", missing)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must be between 0 and 1, got {share}")
    writer = _Writer(random.Random(random_state))
    pairs = [_address(writer, typos, missing) for _ in range(n)]
    return [tokens for tokens, _ in pairs], [labels for _, labels in pairs]


def _address(w: _Writer, typos: float, missing: float) -> tuple[list[str], list[str]]:
    code = w.rng.choice(list(LAYOUTS))
    lines = LAYOUTS[code](w)
    if w.chance(0.5):
        country = [("COUNTRY", w.pick(COUNTRY[code]))]
        if w.chance(0.3):
            lines[-1] += country
        else:
            lines = [country, *lines] if w.chance(0.05) else [*lines, country]
    if w.chance(0.05):
        w.rng.shuffle(lines)
    kept = [_without_edges([field for field in line if not field[0] or not w.chance(missing)]) for line in lines]
    lines = [line for line in kept if line] or [line for line in lines if line][-1:]
    between = w.rng.choices([",", "|", "", ";", "-"], [45, 25, 20, 5, 5])[0]
    spell = _spelling(w)
    tokens, labels = [], []
    for i, line in enumerate(lines):
        if i and between:
            tokens.append(between)
            labels.append("O")
        for kind, text in line:
            words = _TOKEN.findall(spell(text))
            tokens += [_misspell(w, word) if w.chance(typos) else word for word in words]
            labels += [f"{'I' if j else 'B'}-{kind}" if kind else "O" for j in range(len(words))]
    return tokens, labels


def _without_edges(line: list[Field]) -> list[Field]:
    """Drop punctuation that parts left out have left at the ends of a line."""
    while line and not line[-1][0] and line[-1][1] != ")":
        line = line[:-1]
    while line and not line[0][0] and line[0][1] in ",-/":
        line = line[1:]
    return line if any(kind for kind, _ in line) else []


def _spelling(w: _Writer) -> Callable[[str], str]:
    """How this writer treats capitals and accents."""
    case = w.rng.choices([str, str.lower, str.upper, str.title], [68, 15, 12, 5])[0]
    plain = w.chance(0.2)
    letters = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o"})

    def spell(text: str) -> str:
        if plain:
            decomposed = unicodedata.normalize("NFD", text.translate(letters))
            text = "".join(c for c in decomposed if not unicodedata.combining(c))
        return str(case(text))

    return spell


def _misspell(w: _Writer, word: str) -> str:
    if len(word) < 4 or not word.isalpha():
        return word
    i = w.rng.randrange(1, len(word) - 1)
    return w.rng.choice(
        [
            word[:i] + word[i + 1] + word[i] + word[i + 2 :],
            word[:i] + word[i + 1 :],
            word[:i] + word[i] + word[i:],
            word[:i] + w.rng.choice("aeinorst") + word[i + 1 :],
        ]
    )


def address_features(tokens: list[str]) -> list[dict[str, str | bool]]:
    """Features of every token: the word, its ends and its shape, and some of its neighbours'."""
    own = [_word_features(token) for token in tokens]
    features = []
    for i, these in enumerate(own):
        row = dict(these)
        for step, names in NEIGHBOURS.items():
            if 0 <= i + step < len(own):
                row |= {f"{step:+}:{name}": own[i + step][name] for name in names}
        if i == 0:
            row["BOS"] = True
        if i == len(own) - 1:
            row["EOS"] = True
        features.append(row)
    return features


NEIGHBOURS = {
    -2: ("word", "shape"),
    -1: ("word", "shape", "suffix3"),
    +1: ("word", "shape", "suffix3"),
    +2: ("word", "shape"),
}


@lru_cache(maxsize=100_000)
def _word_features(token: str) -> dict[str, str | bool]:
    word = token.lower()
    shape = "".join("9" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in token)
    if "9" not in shape:
        shape = re.sub(r"(.)\1+", r"\1", shape)
    return {
        **{"bias": True, "word": word, "suffix3": word[-3:], "suffix4": word[-4:], "prefix3": word[:3], "shape": shape},
        **{"isdigit": token.isdigit(), "istitle": token.istitle()},
    }


if __name__ == "__main__":
    from partita.report import label_types, render_legend, render_tagged

    all_tokens, all_labels = make_addresses(12)
    types = label_types(label for labels in all_labels for label in labels)
    print(render_legend(types, color=None))
    for tokens, labels in zip(all_tokens, all_labels, strict=True):
        print(render_tagged(tokens, labels, color=None, types=types))
