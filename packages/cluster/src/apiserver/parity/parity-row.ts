import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'

/** One request. `{ns}` in a path stands for the namespace of the run. */
export interface Step {
  readonly method: string
  readonly path: string | ((earlier: readonly JsonObject[]) => string)
  readonly body?: Json | ((earlier: readonly JsonObject[]) => Json)
  /** Content-Type. */
  readonly type?: string
  readonly accept?: string
}

/** A few requests whose answers must be the same on the real server and on ours. */
export interface ParityRow {
  readonly name: string
  readonly steps: readonly Step[]
  /** The real cluster has controllers that see the objects: what they may write is not compared. */
  readonly controlled?: boolean
}

export function row(name: string, ...steps: Step[]): ParityRow {
  return { name, steps }
}

export const get = (path: string, accept?: string): Step => ({ method: 'GET', path, ...(accept === undefined ? {} : { accept }) })
export const post = (path: string, body: Step['body']): Step => ({ method: 'POST', path, ...withBody(body) })
export const put = (path: string, body: Step['body']): Step => ({ method: 'PUT', path, ...withBody(body) })
export const del = (path: string, body?: Step['body']): Step => ({ method: 'DELETE', path, ...withBody(body) })
export const patch = (path: string, body: Step['body'], type = 'merge'): Step => ({
  method: 'PATCH',
  path,
  ...withBody(body),
  type: PATCH_TYPES[type] ?? type,
})

const PATCH_TYPES: Readonly<Record<string, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

function withBody(body: Step['body']): Pick<Step, 'body'> {
  return body === undefined ? {} : { body }
}
