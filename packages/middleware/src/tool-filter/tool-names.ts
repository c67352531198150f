import { InvalidOptions } from '../pipeline/invalid-options.ts'

/** Replaces what the server says about a tool. */
export interface ToolOverride {
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** Hints that replace those of the server, one by one. */
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
}

export interface ToolSelection {
  /** Names as clients see them, after overrides. Empty: every tool. */
  readonly filter: readonly string[]
  /** By the server's own name of the tool. */
  readonly overrides: Readonly<Record<string, ToolOverride>>
}

/** Maps the names that clients see to the server's own, and back. */
export interface ToolNames {
  /** The name at the server, or undefined when clients have no such tool. */
  actualOf(visible: string): string | undefined
  /** The name clients see, or undefined when they do not see the tool. */
  visibleOf(actual: string): string | undefined
  readonly overrides: ReadonlyMap<string, ToolOverride>
  /** Entries that are probably mistakes, for the log. */
  readonly warnings: readonly string[]
}

/**
 * A renamed tool hides the server's own tool of that name, and its old name becomes free: calling it fails unless another tool was
 * given that name. Throws InvalidOptions when two tools get one name.
 */
export function compileToolNames({ filter, overrides }: ToolSelection): ToolNames {
  const byActual = new Map(Object.entries(overrides))
  const allowed = filter.length === 0 ? undefined : new Set(filter)
  const renamed = new Map<string, string>() // visible → actual
  for (const [actual, { name = actual }] of byActual) {
    if (name === actual) continue
    const other = renamed.get(name)
    if (other !== undefined) throw new InvalidOptions(`${other} and ${actual} both become ${name}`)
    renamed.set(name, actual)
  }
  const isRenamed = (actual: string) => (byActual.get(actual)?.name ?? actual) !== actual

  return {
    actualOf(visible) {
      if (allowed !== undefined && !allowed.has(visible)) return undefined
      return renamed.get(visible) ?? (isRenamed(visible) ? undefined : visible)
    },
    visibleOf(actual) {
      const visible = byActual.get(actual)?.name ?? actual
      if (allowed !== undefined && !allowed.has(visible)) return undefined
      return visible === actual && renamed.has(visible) ? undefined : visible
    },
    overrides: byActual,
    warnings: filter
      .filter((name) => isRenamed(name) && !renamed.has(name))
      .map((name) => `${name} is the server's own name of a tool that clients see as ${byActual.get(name)?.name}`),
  }
}
