"""pfprofile: profile DNN training, model its speed and power, plan a GPU cluster under an energy budget."""

from pfprofile._version import __version__
from pfprofile.hook import step

__all__ = ["__version__", "step"]
