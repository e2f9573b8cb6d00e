"""pfprofile: profile DNN training, model its speed and power, plan a GPU cluster under an energy budget."""

from pfprofile._version import __version__

__all__ = ["__version__"]
