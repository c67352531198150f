import type { CallOptions, JsonPatchOp, KubeClient, Patch } from '../client/client.ts'
import { KubeApiError } from '../client/kube-api-error.ts'
import type { KubeObject, ObjectKey, ResourceType } from '../objects/types.ts'

export interface Widget extends KubeObject {
  status?: Record<string, unknown>
}

export const widgets: ResourceType<Widget> = { group: 'test', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }

/**
 * A server with one object. Knows just enough of RFC 6902 for the patches of this package, and of the server's answers: 409 for a
 * resourceVersion that is not current, 422 for a `test` that fails.
 */
export class OneObjectApi {
  object: Widget | undefined
  gets = 0
  readonly patches: { ops: readonly JsonPatchOp[]; subresource: string | undefined }[] = []
  /** Runs before each patch: what somebody else does meanwhile. */
  meanwhile: (attempt: number) => void = () => {}
  readonly client: Pick<KubeClient, 'tryGet' | 'patch'>

  constructor(object?: Widget) {
    this.object = object
    this.client = {
      tryGet: async <T extends KubeObject>() => {
        this.gets++
        return structuredClone(this.object) as T | undefined
      },
      patch: async <T extends KubeObject>(_type: ResourceType<T>, _key: ObjectKey, patch: Patch, options: CallOptions = {}) => {
        if (patch.kind !== 'json') throw new TypeError('only JSON patches here')
        this.patches.push({ ops: patch.ops, subresource: options.subresource })
        this.meanwhile(this.patches.length)
        if (this.object === undefined) throw refusal(404, 'NotFound')
        return this.#apply(patch.ops) as unknown as T
      },
    }
  }

  edit(change: (object: Widget) => void): void {
    if (this.object === undefined) return
    const next = structuredClone(this.object)
    change(next)
    next.metadata.resourceVersion = String(Number(next.metadata.resourceVersion) + 1)
    this.object = next
  }

  #apply(ops: readonly JsonPatchOp[]): Widget {
    const before = this.object
    if (before === undefined) throw refusal(404, 'NotFound')
    const next = structuredClone(before)
    for (const op of ops) applyOp(next, op)
    if (next.metadata.resourceVersion !== before.metadata.resourceVersion) throw refusal(409, 'Conflict')
    this.object = next
    this.edit(() => {})
    return structuredClone(this.object)
  }
}

function applyOp(root: object, op: JsonPatchOp): void {
  const path = op.path.slice(1).split('/')
  const last = path.pop() ?? ''
  let node = root as Record<string, unknown>
  for (const part of path) node = node[part] as Record<string, unknown>
  if (op.op === 'test' && JSON.stringify(node[last]) !== JSON.stringify(op.value)) throw refusal(422, 'Invalid')
  if (op.op === 'remove' && Array.isArray(node)) node.splice(Number(last), 1)
  if (op.op !== 'add' && op.op !== 'replace') return
  if (Array.isArray(node) && last === '-') node.push(op.value)
  else node[last] = op.value
}

export function refusal(status: number, reason: string): KubeApiError {
  return new KubeApiError({ call: { verb: 'patch', target: 'widgets' }, status, body: { reason } })
}
