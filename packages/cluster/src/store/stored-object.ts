import type { JsonObject } from '@thv/kube-schema/kind-schema'

/**
 * One version of an object, never changed. The body has no `apiVersion` and no `kind`: a type may be served under several versions,
 * and lists of built-in kinds leave both out of their items, so the code that serves it puts them in front of `text`.
 */
export class StoredObject {
  /** The resource with its group, for example `configmaps` or `deployments.apps`. */
  readonly type: string
  /** `namespace/name`, or the name alone of what has no namespace. */
  readonly key: string
  readonly revision: number
  readonly text: string
  #body: JsonObject | undefined

  constructor(place: { type: string; key: string; revision: number }, text: string, body?: JsonObject) {
    this.type = place.type
    this.key = place.key
    this.revision = place.revision
    this.text = text
    this.#body = body
  }

  /** Parsed on first use: most of what a start loads is never looked into. */
  get body(): JsonObject {
    this.#body ??= JSON.parse(this.text) as JsonObject
    return this.#body
  }

  get name(): string {
    return this.key.slice(this.key.indexOf('/') + 1)
  }

  get namespace(): string | undefined {
    const at = this.key.indexOf('/')
    return at < 0 ? undefined : this.key.slice(0, at)
  }
}

export function objectKey(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** The object as it stands at `revision`: that is its `metadata.resourceVersion`. */
export function stamp(place: { type: string; key: string; revision: number }, body: JsonObject): StoredObject {
  const metadata = body['metadata'] as JsonObject
  const stamped = { ...body, metadata: { ...metadata, resourceVersion: String(place.revision) } }
  return new StoredObject(place, JSON.stringify(stamped), stamped)
}
