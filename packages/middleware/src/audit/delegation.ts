import { isObject } from '@thv/mcp/json-rpc'

/** Actors on behalf of the subject (RFC 8693 §4.1), the current one first. */
export interface Delegation {
  readonly chain: readonly { readonly iss: string | undefined; readonly sub: string }[]
  readonly truncated: boolean
  /** Actors beyond the limit. */
  readonly omitted: number
  /** The claim ends in something that is not an actor. */
  readonly malformed: boolean
}

/** Bounds the walk; far more than any real chain has. */
const MAX_WALK = 1_000

/** From the claim `act`; undefined without it. */
export function delegationOf(claims: { readonly [name: string]: unknown } | undefined, maxDepth: number): Delegation | undefined {
  let actor = claims?.['act']
  if (actor === undefined) return undefined
  const chain: { iss: string | undefined; sub: string }[] = []
  let omitted = 0
  for (let depth = 0; depth < MAX_WALK && isObject(actor) && typeof actor['sub'] === 'string'; depth++) {
    const { iss, sub, act }: { iss?: unknown; sub?: unknown; act?: unknown } = actor
    if (chain.length < maxDepth) chain.push({ iss: typeof iss === 'string' ? bounded(iss) : undefined, sub: bounded(String(sub)) })
    else omitted++
    actor = act
  }
  return { chain, truncated: omitted > 0, omitted, malformed: actor !== undefined }
}

const MAX_TEXT = 512

function bounded(text: string): string {
  return text.slice(0, MAX_TEXT).toWellFormed()
}
