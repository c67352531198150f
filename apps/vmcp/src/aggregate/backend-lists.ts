import type { JsonObject } from '@thv/mcp/json-rpc'

/** Everything that one backend offers, as it listed it. */
export interface BackendLists {
  readonly backend: string
  readonly tools: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly resources: readonly JsonObject[]
  readonly resourceTemplates: readonly JsonObject[]
}

export type ItemKind = 'tool' | 'prompt' | 'resource' | 'resourceTemplate'

/** By code point: the same order on every machine, whatever its language. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Halves of pairs stand for the highest code points, but below U+E000 as units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

export function sortedByBackend<T extends { readonly backend: string }>(lists: readonly T[]): readonly T[] {
  return lists.toSorted((a, b) => byCodePoint(a.backend, b.backend))
}
