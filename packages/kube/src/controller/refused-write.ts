import { KubeApiError } from '../client/kube-api-error.ts'

/** Answers that stay the same until somebody changes something. */
const LASTING: ReadonlySet<number> = new Set([400, 403, 405, 413, 422])
const WRITES: Readonly<Record<string, string>> = { create: 'create', apply: 'write', patch: 'update', update: 'update', delete: 'delete' }
const MAX_SAID = 400

/** The object that the API server does not let the writer write, why, and what to do. Undefined: it is another kind of error. */
export function refusedWrite(error: unknown, writer: string): string | undefined {
  if (!(error instanceof KubeApiError) || !LASTING.has(error.status) || error.object === undefined) return undefined
  const { verb, object, said } = error
  const { kind, name, subresource } = object
  const does = WRITES[verb]
  // A status that cannot be written cannot tell of it either.
  if (does === undefined || subresource === 'status') return undefined
  const { why, advice } = explain(error, writer)
  // The server's words about a Secret may quote it.
  const words = why ?? (kind === 'Secret' ? `it answers ${error.status} ${error.reason}` : cut(said))
  return `The API server does not let ${writer} ${does} ${kind} ${name}: ${words.replace(/\.$/, '')}. ${advice}`
}

function explain({ said, status, object }: KubeApiError, writer: string): { readonly why?: string; readonly advice: string } {
  if (/immutable/.test(said)) {
    if (object?.kind === 'Secret') return { why: 'it is immutable', advice: 'Replace it by a copy without immutable: true.' }
    return { why: 'it is immutable, or a field of it that must change is', advice: `Delete it: ${writer} creates it again.` }
  }
  const [quota] = /exceeded quota: .*/s.exec(said) ?? []
  if (quota !== undefined) return { why: cut(quota), advice: 'Raise the quota, or delete objects that are not needed.' }
  if (/admission webhook|ValidatingAdmissionPolicy/.test(said))
    return { advice: 'Change the resource, or the admission rule that rejects it.' }
  if (status === 403 && / cannot \w+ resource /.test(said))
    return { advice: `Give the ServiceAccount of ${writer} this permission; the chart has all that it needs.` }
  if (status === 413 || /too long|too large/i.test(said)) return { advice: 'It is too large: make the resource smaller.' }
  return { advice: `Change the resource, or what keeps the object from being written; ${writer} tries again.` }
}

function cut(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > MAX_SAID ? `${line.slice(0, MAX_SAID)}…` : line
}
