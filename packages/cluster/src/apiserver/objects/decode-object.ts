import { jsonEqual } from '@thv/kernel/json'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { duplicatedDocument, duplicatePaths } from '../../encoding/duplicate-members.ts'
import type { ApiCall } from '../http/request-context.ts'
import type { FieldValidation } from '../verbs/write-options.ts'
import { metadataWithoutNulls, typeProblem, withoutNulls } from './decode-types.ts'
import { apiVersionOf, CRD_TYPE, isObject, metaOf, type ServedKind, textAt, without } from './served-kind.ts'
import { badRequest, invalid, invalidValue, type StatusError } from './status-error.ts'

/**
 * An object as a client sent it, into the stored form: known fields only, with defaults, without kind and version. Refuses an object of
 * another kind, and under Strict one with unknown fields; under Warn they become warnings.
 */
export function decodeObject(call: ApiCall, input: Json, validation: FieldValidation, options: DecodeOptions = {}): JsonObject {
  const { kind } = call
  const { refuse = notReadable, source = input } = options
  if (!isObject(input)) throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): it is not a JSON object`)
  checkKind(call, input)
  const unreadable = typeProblem(kind, input)
  if (unreadable !== undefined) throw refuse(unreadable, kind, input)
  const { object, unknown } = kind.schema.prune(keepsNulls(kind) ? metadataWithoutNulls(input) : withoutNulls(kind, input))
  const found = strictProblems(unknown, source, !kind.custom && source === input)
  if (found.length > 0 && validation === 'Strict') throw refuse(`strict decoding error: ${found.join(', ')}`, kind, input)
  if (validation === 'Warn') call.warnings.push(...found)
  const whole = kind.schema.applyDefaults(object)
  const body = without(whole, 'kind', 'apiVersion')
  const checked = { ...body, metadata: withoutDuplicateOwners(tidied(metaOf(body)), call.warnings) }
  const stored = kind.conversion?.toStored(checked) ?? checked
  return kind.rules.applyDefaults?.(stored) ?? stored
}

interface DecodeOptions {
  readonly refuse?: Refusal
  /** The body as sent, where the object is made from it: a patch. */
  readonly source?: Json
}

/** A schema may have a null as a default or in an enum. */
function keepsNulls({ custom, type }: ServedKind): boolean {
  return custom || type === CRD_TYPE
}

/** Makes the refusal of an object that cannot be read, or not strictly. */
type Refusal = (why: string, kind: ServedKind, input: JsonObject) => StatusError

/**
 * Fields that are unknown or come twice, in the words of Go's strict decoder. It reads built-in kinds in one go, and knows nothing of what
 * is inside an unknown field. Custom objects and patches are first read without a schema.
 */
function strictProblems(unknown: readonly string[], source: Json, inOneGo: boolean): string[] {
  const members = duplicatedDocument(source)
  const unknownTexts = unknown.map((path) => `unknown field "${path}"`)
  if (members === undefined) return unknownTexts
  const where = Array.isArray(source) ? 'json patch ' : ''
  if (!inOneGo) return [...duplicatePaths(source).map((path) => `${where}duplicate field "${path}"`), ...unknownTexts]
  const isUnknown = (path: string) => unknown.some((one) => path === one || path.startsWith(`${one}.`) || path.startsWith(`${one}[`))
  const inOrder = members.flatMap(({ path, again }) =>
    unknown.includes(path) ? [`unknown field "${path}"`] : again && !isUnknown(path) ? [`duplicate field "${path}"`] : [],
  )
  return [...new Set(inOrder)]
}

function notReadable(why: string, { kind, version }: ServedKind): StatusError {
  return badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`)
}

/** The refusal of a patch that leads to an object which cannot be read: it shows what the object would have become. */
export function patchNotReadable(why: string, _kind: ServedKind, patched: JsonObject): StatusError {
  return invalid({ group: '', kind: '', plural: '' }, '', [invalidValue('patch', JSON.stringify(patched), why)])
}

/** Empty lists and maps of the metadata are as good as none, but for managed fields: an empty list of them resets them. */
function tidied(metadata: JsonObject): JsonObject {
  const empty = (value: Json) => value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) => !empty(value) || (name === 'managedFields' && value !== null)),
  )
}

/** The same owner said twice is one. */
function withoutDuplicateOwners(metadata: JsonObject, warnings: string[]): JsonObject {
  const owners = metadata['ownerReferences']
  if (!Array.isArray(owners) || owners.length < 2) return metadata
  const [kept, duplicates]: [Json[], string[]] = [[], []]
  for (const owner of owners as readonly Json[])
    if (kept.some((other) => jsonEqual(other, owner))) duplicates.push(textAt(owner, 'uid'))
    else kept.push(owner)
  if (duplicates.length === 0) return metadata
  warnings.push(
    `.metadata.ownerReferences contains duplicate entries, which are dropped; duplicate UID(s) observed: ${duplicates.join(', ')}`,
  )
  return { ...metadata, ownerReferences: kept }
}

/** The namespace of the path goes into the object; another one there is refused. */
export function placeInNamespace({ kind, path }: ApiCall, body: JsonObject): JsonObject {
  const metadata = metaOf(body)
  const own = textAt(metadata, 'namespace')
  if (!kind.namespaced) return { ...body, metadata: without(metadata, 'namespace') }
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
    const wrong = invalidValue('kind', name, `must be ${kind.kind}`)
    throw invalid({ ...kind, kind: name }, textAt(input, 'metadata', 'name'), [wrong])
  }
  const known = env.registry.all().some((one) => apiVersionOf(one) === version && one.kind === name)
  const short = version.split('/').at(-1) ?? ''
  const why = known
    ? `converting (${short}.${name}) to (${internalName(kind.group)}.${kind.kind}): unknown conversion`
    : `no kind "${name}" is registered for version "${version}" in scheme "pkg/runtime/scheme.go:110"`
  throw badRequest(`${name} in version "${short}" cannot be handled as a ${kind.kind}: ${why}`)
}
