"""Image sets: ordered sample ids, their decoded images and a digest. No torch here."""

from harness.images.folder import folder_images
from harness.images.folder import list_folder
from harness.images.imageset import EncodedImages
from harness.images.imageset import ImageSet
from harness.images.imageset import Unreadable
from harness.images.place import list_images
from harness.images.place import open_images
from harness.images.tar import list_tars
from harness.images.tar import tar_images
from harness.images.zip import list_zip
from harness.images.zip import zip_images

__all__ = [
    "EncodedImages",
    "ImageSet",
    "Unreadable",
    "folder_images",
    "list_folder",
    "list_images",
    "list_tars",
    "list_zip",
    "open_images",
    "tar_images",
    "zip_images",
]
