PICTURES: dict[str, object] = {}
