"""``python -m pfprofile.train``: see `pfprofile.train.standalone`."""

from pfprofile.train.standalone import main

raise SystemExit(main())
