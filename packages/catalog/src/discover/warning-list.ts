import { compareCodePoints } from '../text.ts'
import type { ExportWarning } from './objects/export-warning.ts'

/** Warnings by who gives them, and all in order. The list stays the same object for as long as it says the same. */
export class WarningList {
  readonly #byOwner = new Map<string, readonly ExportWarning[]>()
  #sorted: readonly ExportWarning[] | undefined = []

  set(owner: string, warnings: readonly ExportWarning[]): void {
    const before = this.#byOwner.get(owner) ?? []
    if (before.length === warnings.length && before.every((warning, i) => isSame(warning, warnings[i]))) return
    if (warnings.length === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, warnings)
    this.#sorted = undefined
  }

  /** By object, then reason. */
  get all(): readonly ExportWarning[] {
    this.#sorted ??= [...this.#byOwner.values()].flat().sort(byObject)
    return this.#sorted
  }
}

function isSame(a: ExportWarning, b: ExportWarning | undefined): boolean {
  return b !== undefined && byObject(a, b) === 0 && a.level === b.level
}

function byObject(a: ExportWarning, b: ExportWarning): number {
  return (
    compareCodePoints(a.object.kind, b.object.kind) ||
    compareCodePoints(a.object.namespace, b.object.namespace) ||
    compareCodePoints(a.object.name, b.object.name) ||
    compareCodePoints(a.reason, b.reason) ||
    compareCodePoints(a.message, b.message)
  )
}
