import { createRequire } from 'node:module'

export type CedarEngine = typeof import('@cedar-policy/cedar-wasm/nodejs')

const PACKAGE = '@cedar-policy/cedar-wasm/nodejs'
let loaded: CedarEngine | undefined

/**
 * Loaded by the first caller (about 40 ms and 16 MB) and shared by all. Through `require` at run time, so that a bundle leaves the package
 * where it is: it reads its WebAssembly file from beside itself.
 */
export function cedarEngine(): CedarEngine {
  loaded ??= load()
  return loaded
}

/**
 * After anything was thrown out of it: the engine is compiled without unwinding, so its memory is in an unknown state from then on and
 * every later call would fail too, for any policy.
 */
export function discardCedarEngine(): void {
  loaded = undefined
}

/** A `require` of its own each time: one that lives on would keep discarded engines in memory. */
function load(): CedarEngine {
  const requireFresh = createRequire(import.meta.url)
  delete requireFresh.cache[requireFresh.resolve(PACKAGE)]
  return requireFresh(PACKAGE) as CedarEngine
}
