"""``python -m pfprofile``."""

from pfprofile.cli import app

if __name__ == "__main__":
    app(prog_name="pfprofile")
