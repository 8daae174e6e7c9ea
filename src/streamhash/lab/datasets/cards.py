"""What is known of each data set: where it comes from, under which terms, and how it was made."""

from dataclasses import dataclass

from streamhash.errors import MissingDataError
from streamhash.lab.datasets import cifar, mnist
from streamhash.lab.datasets.folders import data_folders

__all__ = ["CARDS", "FILES", "PUBLIC", "Card", "missing"]


@dataclass(frozen=True)
class Card:
    """The facts of one data set.

    ``checksum`` is that of the files (algorithm:digits, one for each), and ``where`` the place on
    this machine: a folder, or a few words for what needs no file, or None if it is missing.
    """

    name: str
    rows: int
    features: int
    classes: int
    source: str
    licence: str
    note: str
    checksum: str | None = None
    where: str | None = None

    @property
    def here(self) -> bool:
        """Whether the set can be loaded without a download."""
        return self.where is not None


CARDS = {
    card.name: card
    for card in [
        Card(
            "digits",
            *(1_797, 64, 10),
            source="Alpaydin, Kaynak 1998: optical recognition of handwritten digits, UCI",
            licence="CC BY 4.0",
            note="8 × 8 images, pixels / 16",
            where="comes with scikit-learn",
        ),
        Card(
            "mnist",
            *(70_000, 784, 10),
            source="LeCun, Cortes, Burges: the MNIST database of handwritten digits",
            licence="CC BY-SA 3.0",
            note="28 × 28 images, pixels / 255; the 60,000 training rows first",
            checksum=" ".join(f"md5:{file.md5}" for file in mnist.FILES),
        ),
        Card(
            "cifar10-features",
            *(60_000, 1_280, 10),
            source="Krizhevsky 2009: learning multiple layers of features from tiny images",
            licence="none stated by the authors; cite the source",
            note="penultimate layer of EfficientNet-Lite2 with ImageNet weights, not normalised; "
            "the 50,000 training rows first, sorted by class",
            checksum="sha256:ad36c4637d7221a51f5248a36d08f2937507bf75d44af9f610504af32186cd64",
        ),
        Card(
            "cifar10-vgg16",
            *(60_000, 4_096, 10),
            source="CIFAR10_VGG16_fc7.mat, from the authors of the compared methods; images: "
            "Krizhevsky 2009",
            licence="none stated by the authors; cite the source",
            note="layer fc7 of VGG-16, raw: as in the file, not normalised; the training rows "
            "first. We never had this file: its checksum is unknown to us, and a loaded set's "
            "card has that of the file as read",
        ),
        Card(
            "cifar10-images",
            *(60_000, 3_072, 10),
            source="Krizhevsky 2009: learning multiple layers of features from tiny images",
            licence="none stated by the authors; cite the source",
            note="32 × 32 × 3 images, pixels / 255; the 50,000 training rows first. For "
            "extract_features, rather than for hashing",
            checksum=f"md5:{cifar.ARCHIVE.md5}",
        ),
        Card(
            "miniplaces-features",
            *(100_000, 128, 100),
            source="MiniPlaces, a subset of MIT Places2: Zhou et al. 2017",
            licence="research and education, see the terms of MIT Places2; cite the source",
            note="penultimate layer of EfficientNet-Lite2 with ImageNet weights, PCA to 128, not "
            "normalised; the 90,000 training rows first, sorted by class",
            checksum="sha256:40680daa32b6740f2157c8ed37fad18b915126fbd7244def82d17e059dabd80d",
        ),
        Card(
            "places205",
            *(2_500_000, 128, 205),
            source="Places205_AlexNet_fc7_PCA128.mat, from the authors of the compared methods; "
            "images: Zhou et al. 2014, the Places database",
            licence="research and education, see the terms of MIT Places; cite the source",
            note="layer fc7 of AlexNet, PCA to 128, raw: as in the file, not normalised; about "
            "2.5 million rows. We never had this file: its checksum is unknown to us, and a "
            "loaded set's card has that of the file as read",
        ),
        Card(
            "places205-synthetic",
            *(2_500_000, 128, 205),
            source="SYNTHETIC, not Places205: streamhash.lab.datasets.PlacesLikeStream()",
            licence="made up, no rights",
            note="SYNTHETIC rows with Places205's size, classes and difficulty (linear accuracy "
            "about 50 %) and without its images, raw; written into the cache at its first use",
            where="made when asked for",
        ),
        Card(
            "synthetic",
            *(30_000, 64, 10),
            source="streamhash.lab.datasets.SyntheticStream() with its defaults",
            licence="made up, no rights",
            note="Gaussian classes, all mixed, no drift",
            where="made when asked for",
        ),
    ]
}

# For each set that lies in files: its files, each with the names it may have.
FILES: dict[str, tuple[tuple[str, ...], ...]] = {
    "mnist": tuple(file.names for file in mnist.FILES),
    "cifar10-features": (("cifar10_features.npz",),),
    "cifar10-vgg16": (("CIFAR10_VGG16_fc7.mat",),),
    "cifar10-images": ((cifar.ARCHIVE.name,),),
    "miniplaces-features": (("miniplaces_features.npz",),),
    "places205": (("Places205_AlexNet_fc7_PCA128.mat",),),
}
PUBLIC = ("mnist", "cifar10-images")  # sets that can be downloaded


def missing(place: str, name: str) -> MissingDataError:
    """Return the error for a set that is not here: where it was looked for, and the next step."""
    looked = " and ".join(map(str, data_folders()))
    files = ", ".join(names[0] for names in FILES[name])
    if name in PUBLIC:
        them = "it" if len(FILES[name]) == 1 else "them"
        step = f"run streamhash data fetch {name}, or set STREAMHASH_DATA to a folder that has "
        step += them
    else:
        step = "it has no public download: get the file and set STREAMHASH_DATA to its folder"
    return MissingDataError(f"{place}: {name!r} ({files}) is not in {looked}; {step}.")
