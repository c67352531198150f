import type { Json, JsonObject } from '../../kind-schema.ts'

const SERVER_FIELDS = new Set(['uid', 'creationTimestamp', 'resourceVersion', 'managedFields', 'generation'])

/** Kinds whose status a controller writes when it likes. */
const CONTROLLED: ReadonlySet<unknown> = new Set(['Deployment', 'Service'])

/** An object without what differs from run to run and without the traces of controllers. */
export function recordedObject({ metadata, status, ...rest }: JsonObject): JsonObject {
  const meta = metadata as Record<string, Json>
  const annotations = Object.entries((meta['annotations'] ?? {}) as JsonObject).filter(
    ([name]) => !name.startsWith('deployment.kubernetes.io/'),
  )
  const { annotations: _annotations, ...kept } = Object.fromEntries(Object.entries(meta).filter(([name]) => !SERVER_FIELDS.has(name)))
  return {
    ...withoutAddresses(rest),
    ...(status !== undefined && !CONTROLLED.has(rest['kind']) && { status }),
    metadata: {
      ...kept,
      ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
      managedFields: recordedManagers((meta['managedFields'] ?? []) as readonly JsonObject[]),
    },
  }
}

/** In an order of their own: the real one depends on the clock. */
export function recordedManagers(entries: readonly JsonObject[]): readonly JsonObject[] {
  return entries
    .filter(({ manager }) => manager !== 'kube-controller-manager')
    .map(({ time: _time, ...entry }) => entry as JsonObject)
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

function keyOf({ manager, operation, subresource }: JsonObject): string {
  return JSON.stringify([manager ?? '', operation ?? '', subresource ?? ''])
}

/** A Service gets its address from the server. */
function withoutAddresses(object: JsonObject): JsonObject {
  const spec = object['spec'] as JsonObject | undefined
  if (!spec?.['clusterIP']) return object
  const { clusterIP: _ip, clusterIPs: _ips, ...rest } = spec as Record<string, Json>
  return { ...object, spec: rest }
}
