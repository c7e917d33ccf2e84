#!/usr/bin/env python3
"""Prints which file of a module uses which declarations of another, as the compiler recorded it.

  references.py STORE MODULE

STORE is the index that a debug build leaves, as .build/debug/index/store. A line is a using file, the line in it, the
declaring file and the declaration, between tabs. Needs libIndexStore of the toolchain.
"""
import ctypes
import json
import subprocess
import sys
from pathlib import Path

DEFINITION, REFERENCE, IMPLICIT, RECORD = 1 << 1, 1 << 2, 1 << 8, 2


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.data, self.length).decode()


POINTER, VISIT = ctypes.c_void_p, ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)
VISIT_TEXT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, Text)


class Index:
    def __init__(self, path):
        target = json.loads(subprocess.run(["swiftc", "-print-target-info"], check=True, capture_output=True).stdout)
        library = Path(target["paths"]["runtimeResourcePath"]).parent / "libIndexStore.so"
        self.library = ctypes.CDLL(str(library))
        self.store = self.call("store_create", POINTER, str(path).encode(), None)
        if not self.store:
            sys.exit(f"{path} is no index of a debug build")

    def call(self, name, result, *arguments):
        function = getattr(self.library, f"indexstore_{name}")
        function.restype = result
        return function(*[POINTER(a) if isinstance(a, int) and a > 1 else a for a in arguments])

    def units(self):
        names = []
        self.call("store_units_apply_f", ctypes.c_bool, self.store, 0, None,
                  VISIT_TEXT(lambda _, name: names.append(str(name)) or True))
        return names

    def records(self, unit, module):
        """The source of a unit of the module, when it was compiled, and the names of its records."""
        reader = self.call("unit_reader_create", POINTER, self.store, unit.encode(), None)
        source, names = str(self.call("unit_reader_get_main_file", Text, reader)), []

        def visit(_, dependency):
            if self.call("unit_dependency_get_kind", ctypes.c_int, dependency) == RECORD:
                path = str(self.call("unit_dependency_get_filepath", Text, dependency))
                if path == source:
                    names.append(str(self.call("unit_dependency_get_name", Text, dependency)))
            return True

        if str(self.call("unit_reader_get_module_name", Text, reader)) == module and Path(source).exists():
            self.call("unit_reader_dependencies_apply_f", ctypes.c_bool, reader, None, VISIT(visit))
        seconds, nanoseconds = ctypes.c_int64(), ctypes.c_int64()
        self.call("unit_reader_get_modification_time", None, reader, ctypes.byref(seconds), ctypes.byref(nanoseconds))
        self.call("unit_reader_dispose", None, reader)
        return source, (seconds.value, nanoseconds.value), names

    def occurrences(self, record):
        """Of each symbol in a record its identifier, name, roles and line."""
        reader, found = self.call("record_reader_create", POINTER, self.store, record.encode(), None), []

        def visit(_, occurrence):
            symbol = self.call("occurrence_get_symbol", POINTER, occurrence)
            line, column = ctypes.c_uint(), ctypes.c_uint()
            self.call("occurrence_get_line_col", None, occurrence, ctypes.byref(line), ctypes.byref(column))
            found.append((str(self.call("symbol_get_usr", Text, symbol)), str(self.call("symbol_get_name", Text, symbol)),
                          self.call("occurrence_get_roles", ctypes.c_uint64, occurrence), line.value))
            return True

        self.call("record_reader_occurrences_apply_f", ctypes.c_bool, reader, None, VISIT(visit))
        self.call("record_reader_dispose", None, reader)
        return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    index, owners, uses, newest = Index(sys.argv[1]), {}, [], {}
    for unit in index.units():
        source, compiled, records = index.records(unit, sys.argv[2])
        newest[source] = max(newest.get(source, ((0, 0), [])), (compiled, records))
    for source, (_, records) in newest.items():
        for record in records:
            for identifier, name, roles, line in index.occurrences(record):
                if roles & DEFINITION:
                    owners[identifier] = source
                elif roles & REFERENCE and not roles & IMPLICIT:
                    uses.append((source, line, identifier, name))
    for source, line, identifier, name in sorted(set(uses)):
        owner = owners.get(identifier, source)
        if owner != source:
            print(source, line, owner, name, sep="\t")


main()
