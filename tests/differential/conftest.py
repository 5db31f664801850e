import os

os.environ["CDYNAMO_STRICT"] = "1"
