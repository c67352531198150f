import { compareCodePoints } from '../text.ts'
import { compareVersions } from '../version-order.ts'
import { type ExportedEntry, isSameEntry } from './entry/exported-entry.ts'
import type { ExportWarning } from './objects/export-warning.ts'

/** Entries and warnings of one resource, or of one copied server. */
export interface Output {
  readonly entries: readonly ExportedEntry[]
  readonly warnings: readonly ExportWarning[]
}

export interface EntryChanges {
  /** New ones, and those that are others than before. By name, then newest version first. */
  readonly entries: readonly ExportedEntry[]
  /** As they were. In the same order. */
  readonly gone: readonly ExportedEntry[]
  /** As the changed ones were before. */
  readonly replaced: readonly ExportedEntry[]
}

const NONE: readonly ExportedEntry[] = []

/** The entries of an export by what gives them, and their changes since the last `markRead`. No two have the same name and version. */
export class EntryOutputs {
  readonly #outputs = new Map<string, Output>()
  /** Their entries at the last `markRead`. */
  readonly #before = new Map<string, readonly ExportedEntry[]>()
  /** Set since the last `takeTouched`. */
  #touched = new Set<string>()
  #sorted: readonly ExportedEntry[] | undefined = []

  get(key: string): Output | undefined {
    return this.#outputs.get(key)
  }

  set(key: string, output: Output | undefined): void {
    const old = this.#outputs.get(key)
    if (old === undefined && output === undefined) return
    if (!this.#before.has(key)) this.#before.set(key, old?.entries ?? NONE)
    this.#touched.add(key)
    this.#sorted = undefined
    if (output === undefined) this.#outputs.delete(key)
    else this.#outputs.set(key, output)
  }

  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched
    this.#touched = new Set()
    return touched
  }

  /** By name, then newest version first. */
  get entries(): readonly ExportedEntry[] {
    this.#sorted ??= [...this.#outputs.values()].flatMap(({ entries }) => entries).sort(byName)
    return this.#sorted
  }

  /** Since the last `markRead`. A name may have gone from one output to another meanwhile. */
  get changes(): EntryChanges {
    const before = new Map<string, ExportedEntry>()
    for (const entries of this.#before.values()) for (const entry of entries) before.set(keyOf(entry), entry)
    const changed: ExportedEntry[] = []
    const replaced: ExportedEntry[] = []
    for (const key of this.#before.keys()) {
      for (const entry of this.#outputs.get(key)?.entries ?? NONE) {
        const old = before.get(keyOf(entry))
        before.delete(keyOf(entry))
        if (old !== undefined && isSameEntry(old, entry)) continue
        changed.push(entry)
        if (old !== undefined) replaced.push(old)
      }
    }
    return { entries: changed.sort(byName), gone: [...before.values()].sort(byName), replaced }
  }

  markRead(): void {
    this.#before.clear()
  }
}

function keyOf({ name, version }: ExportedEntry): string {
  return `${name}\n${version}`
}

function byName(a: ExportedEntry, b: ExportedEntry): number {
  return compareCodePoints(a.name, b.name) || compareVersions(b.version, a.version)
}
