import { badRequest } from '../objects/status-error.ts'

/** Where a list goes on. Opaque to clients. */
export interface ContinueToken {
  /** -1: at whatever is the latest; given to who comes too late for a consistent list. */
  readonly revision: number
  readonly key: string
}

export function writeContinue({ revision, key }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: key })).toString('base64url')
}

export function readContinue(text: string): ContinueToken {
  const wrong = text.search(/[^\w-]/)
  const at = wrong >= 0 ? wrong : text.length % 4 === 1 ? text.length - 1 : undefined
  if (at !== undefined) throw badRequest(`invalid continue token: continue key is not valid: illegal base64 data at input byte ${at}`)
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    throw badRequest(`invalid continue token: continue key is not valid: ${jsonProblem(Buffer.from(text, 'base64url'))}`)
  }
  const { v, rv, start } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (v !== 'meta.k8s.io/v1' || typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv < -1 || typeof start !== 'string')
    throw badRequest('invalid continue token: continue key is not valid: it was not given by this server')
  return { revision: rv, key: start }
}

function jsonProblem(bytes: Buffer): string {
  const first = bytes[0]
  if (first === undefined || first === 0x7b) return 'unexpected end of JSON input'
  const shown = first >= 0x20 && first < 0x7f ? String.fromCharCode(first) : `\\u${first.toString(16).padStart(4, '0')}`
  return `invalid character '${shown}' looking for beginning of value`
}
