import type { ApiCall } from './api-call.ts'
import type { Json, JsonObject } from './kind-schema.ts'
import { apiVersionOf, isObject, metaOf, textAt, without } from './served-kind.ts'
import { badRequest } from './status-error.ts'
import type { FieldValidation } from './write-options.ts'

/**
 * An object as a client sent it, into the stored form: known fields only, with defaults, without kind and version. Refuses an object of
 * another kind, and under Strict one with unknown fields; under Warn they become warnings.
 */
export function decodeObject(call: ApiCall, input: Json, validation: FieldValidation): JsonObject {
  const { kind } = call
  if (!isObject(input)) throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): it is not a JSON object`)
  checkKind(call, input)
  const { object, unknown, duplicates = [] } = kind.schema.prune(input)
  const found = [...duplicates.map((path) => `duplicate field "${path}"`), ...unknown.map((path) => `unknown field "${path}"`)]
  if (found.length > 0 && validation === 'Strict')
    throw badRequest(
      `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: strict decoding error: ${found.join(', ')}`,
    )
  if (validation === 'Warn') call.warnings.push(...found)
  const whole = kind.schema.applyDefaults(object)
  const body = without(whole, 'kind', 'apiVersion')
  const checked = { ...body, metadata: metaOf(body) }
  return kind.conversion?.toStored(checked) ?? checked
}

/** The namespace of the path goes into the object; another one there is refused. */
export function placeInNamespace({ kind, path }: ApiCall, body: JsonObject): JsonObject {
  const metadata = metaOf(body)
  const own = textAt(metadata, 'namespace')
  if (!kind.namespaced) return own === '' ? { ...body, metadata: without(metadata, 'namespace') } : body
  if (own !== '' && own !== path.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  return { ...body, metadata: { ...metadata, namespace: path.namespace ?? '' } }
}

/** The internal name of a group, as the real server shows it in one of its refusals. */
function internalName(group: string): string {
  return group === '' ? 'core' : (group.split('.', 1)[0] ?? '')
}

function checkKind({ kind, env }: ApiCall, input: JsonObject): void {
  const expected = apiVersionOf(kind)
  const version = textAt(input, 'apiVersion') || expected
  const name = textAt(input, 'kind') || kind.kind
  if (version === expected && name === kind.kind) return
  if (kind.custom) {
    if (version !== expected)
      throw badRequest(`the API version in the data (${version}) does not match the expected API version (${expected})`)
    throw badRequest(`the kind in the data (${name}) does not match the expected kind(${kind.kind})`)
  }
  const known = env.registry.all().some((one) => apiVersionOf(one) === version && one.kind === name)
  const short = version.split('/').at(-1) ?? ''
  const why = known
    ? `converting (${short}.${name}) to (${internalName(kind.group)}.${kind.kind}): unknown conversion`
    : `no kind "${name}" is registered for version "${version}" in scheme "pkg/runtime/scheme.go:110"`
  throw badRequest(`${name} in version "${short}" cannot be handled as a ${kind.kind}: ${why}`)
}
