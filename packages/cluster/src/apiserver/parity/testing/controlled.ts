import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'

const CONTROLLERS: ReadonlySet<unknown> = new Set(['kube-controller-manager', 'kube-scheduler'])
const REVISION = 'deployment.kubernetes.io/revision'

/** An answer without what the controllers of a real cluster may have written in the meantime. */
export function withoutControllers(body: Json): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const { status: _status, metadata, ...rest } = body as JsonObject
  // The status of a Status is its outcome, that of a Scale a number of pods.
  if (rest['kind'] === 'Status') return body
  return { ...rest, metadata: ownMetadata((metadata ?? {}) as JsonObject) }
}

/** The note of its revision is a new generation of a Deployment. */
function ownMetadata({ generation: _generation, annotations, managedFields, ...rest }: JsonObject): JsonObject {
  const notes = Object.entries((annotations ?? {}) as JsonObject).filter(([name]) => name !== REVISION)
  // Their order is that of the seconds in which they were written.
  const managed = ((managedFields ?? []) as readonly JsonObject[])
    .filter(({ manager }) => !CONTROLLERS.has(manager))
    .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  return { ...rest, ...(notes.length > 0 ? { annotations: Object.fromEntries(notes) } : {}), managedFields: managed }
}

function nameOf({ operation, manager, subresource = '' }: JsonObject): string {
  return `${operation}/${manager}/${subresource}`
}
