/** Far more than any manifest has, and little enough for everyone who walks the value by recursion. */
export const MAX_DEPTH = 500
/** A ConfigMap of the greatest size has fewer, and walking more of them delays every other request. */
export const MAX_VALUES = 100_000

/** Why this JSON should not be parsed, let alone walked; undefined when it is of a usual shape. */
export function boundsProblem(bytes: Uint8Array): string | undefined {
  const shape = jsonShape(bytes)
  return typeof shape === 'string' ? shape : undefined
}

/** The number of members of all objects together, those that come twice counted twice; or why it should not be parsed. */
export function jsonShape(bytes: Uint8Array): { readonly members: number } | string {
  let depth = 0
  let values = 1
  let members = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x2c) values++
    else if (byte === 0x3a) members++
    else if (byte === 0x7b || byte === 0x5b) {
      values++
      if (++depth > MAX_DEPTH) return `nested more than ${MAX_DEPTH} levels deep`
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return values > MAX_VALUES ? `made of more than ${MAX_VALUES} values` : { members }
}
