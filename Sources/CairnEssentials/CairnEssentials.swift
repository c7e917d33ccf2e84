// The part of Foundation that Linux has without the rest. A Mac has only all of it.

#if canImport(FoundationEssentials)
  @_exported public import FoundationEssentials
#else
  @_exported public import Foundation
#endif
