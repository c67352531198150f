import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { objectKey, type StoredObject } from '../../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, storedObject, timestamp } from '../http/request-context.ts'
import { at, isObject, metaOf, textAt } from '../objects/served-kind.ts'
import { badRequest, conflict, invalid, invalidValue, notFound } from '../objects/status-error.ts'
import { writeOptions } from '../verbs/write-options.ts'
import { type BoundObject, ISSUER } from './account-tokens.ts'

const API_VERSION = 'authentication.k8s.io/v1'
const TOKEN_REQUEST = { group: 'authentication.k8s.io', kind: 'TokenRequest', plural: 'tokenrequests' }
const NAMESPACES = { group: '', kind: 'Namespace', plural: 'namespaces' }
const DEFAULT_SECONDS = 3_600
const MIN_SECONDS = 600
const MAX_SECONDS = 2 ** 32

/** POST …/serviceaccounts/NAME/token. Nothing is stored: a dry run gives a token, too. */
export function requestToken(call: ApiCall, input: Json): ApiAnswer {
  const { path, env } = call
  const wish = decodeRequest(call, input)
  const metadata = metaOf(wish)
  const [namespace = '', name = ''] = [path.namespace, path.name]
  if (env.store.get('namespaces', namespace) === undefined) throw notFound(NAMESPACES, namespace)
  if (!['', namespace].includes(textAt(metadata, 'namespace')))
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  if (!['', name].includes(textAt(metadata, 'name'))) {
    const why = 'must match the service account name if specified'
    throw invalid(TOKEN_REQUEST, name, [invalidValue('metadata.name', textAt(metadata, 'name'), why)])
  }
  const account = storedObject(call)
  const { audiences, seconds, reference } = specOf(wish)
  const problems = secondsProblems(seconds)
  if (problems.length > 0) throw invalid(TOKEN_REQUEST, '', problems)
  const bound = reference === undefined ? undefined : boundObject(call, reference)
  const { token, expires } = env.accounts.mint({ account, audiences, seconds, bound })
  const body = {
    kind: 'TokenRequest',
    apiVersion: API_VERSION,
    metadata: {
      ...metadata,
      name,
      namespace,
      uid: textAt(account.body, 'metadata', 'uid'),
      creationTimestamp: textAt(account.body, 'metadata', 'creationTimestamp'),
      managedFields: [managedFields(call, wish)],
    },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: reference ?? null },
    status: { token, expirationTimestamp: new Date(expires * 1_000).toISOString().replace('.000Z', 'Z') },
  }
  return { status: 201, text: JSON.stringify(body) }
}

/** Nothing is stored, yet the real server tells who set what. */
function managedFields(call: ApiCall, wish: JsonObject): JsonObject {
  const { audiences, boundObjectRef: reference } = { ...(isObject(wish['spec']) ? wish['spec'] : {}) } as JsonObject
  const fields = {
    ...(Array.isArray(audiences) && audiences.length > 0 ? { 'f:audiences': {} } : {}),
    ...(isObject(reference)
      ? { 'f:boundObjectRef': Object.fromEntries(Object.keys(reference).map((name): [string, JsonObject] => [`f:${name}`, {}])) }
      : {}),
    'f:expirationSeconds': {},
  }
  return {
    manager: writeOptions(call, 'CreateOptions').fieldManager,
    operation: 'Update',
    apiVersion: API_VERSION,
    time: timestamp(call.env.clock),
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': fields },
    subresource: 'token',
  }
}

interface TokenSpec {
  readonly audiences: readonly string[]
  readonly seconds: number
  readonly reference: JsonObject | undefined
}

function specOf(wish: JsonObject): TokenSpec {
  const audiences = at(wish, 'spec', 'audiences')
  const seconds = at(wish, 'spec', 'expirationSeconds')
  const reference = at(wish, 'spec', 'boundObjectRef')
  return {
    audiences: Array.isArray(audiences) && audiences.length > 0 ? (audiences as readonly string[]) : [ISSUER],
    seconds: typeof seconds === 'number' ? seconds : DEFAULT_SECONDS,
    reference: isObject(reference) ? reference : undefined,
  }
}

function secondsProblems(seconds: number): FieldProblem[] {
  const wrong = (why: string) => [invalidValue('spec.expirationSeconds', seconds, why)]
  if (seconds < MIN_SECONDS) return wrong('may not specify a duration less than 10 minutes')
  return seconds > MAX_SECONDS ? wrong('may not specify a duration larger than 2^32 seconds') : []
}

const BINDABLE: Readonly<Record<string, { kind: BoundObject['kind']; plural: string }>> = {
  Pod: { kind: 'Pod', plural: 'pods' },
  Secret: { kind: 'Secret', plural: 'secrets' },
  Node: { kind: 'Node', plural: 'nodes' },
}

function boundObject(call: ApiCall, reference: JsonObject): BoundObject {
  const [kindName, apiVersion, name, uid] = ['kind', 'apiVersion', 'name', 'uid'].map((member) => textAt(reference, member)) as [
    string,
    string,
    string,
    string,
  ]
  const known = Object.hasOwn(BINDABLE, kindName) && !apiVersion.includes('/') ? BINDABLE[kindName] : undefined
  if (known === undefined) {
    const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion]
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kindName}`)
  }
  if (name === '') throw badRequest('Name parameter required.')
  const { kind, plural } = known
  const object = call.env.store.get(plural, objectKey(kind === 'Node' ? undefined : call.path.namespace, name))
  if (object === undefined) throw notFound({ group: '', kind, plural }, name)
  checkAccount(call, kind, object)
  if (uid !== '' && uid !== textAt(object.body, 'metadata', 'uid')) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group: '', kind, plural: kind }, name, why)
  }
  return { kind, object }
}

function checkAccount({ path }: ApiCall, kind: BoundObject['kind'], { body }: StoredObject): void {
  if (kind !== 'Pod' || textAt(body, 'spec', 'serviceAccountName') === path.name) return
  throw badRequest(`cannot bind token for serviceaccount "${path.name}" to pod running with different serviceaccount name.`)
}

const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  '': ['kind', 'apiVersion', 'metadata', 'spec', 'status'],
  spec: ['audiences', 'expirationSeconds', 'boundObjectRef'],
  'spec.boundObjectRef': ['kind', 'apiVersion', 'name', 'uid'],
}

/** The kind has no schema among the stored ones; these are the checks that a request for a token can fail. */
function decodeRequest(call: ApiCall, input: Json): JsonObject {
  const options = writeOptions(call, 'CreateOptions')
  const refused = (why: string) => badRequest(`TokenRequest in version "v1" cannot be handled as a TokenRequest: ${why}`)
  if (!isObject(input)) throw refused('it is not a JSON object')
  const [kind, version] = [textAt(input, 'kind') || 'TokenRequest', textAt(input, 'apiVersion') || API_VERSION]
  if (kind !== 'TokenRequest' || version !== API_VERSION) {
    const short = version.split('/').at(-1) ?? ''
    const why = `converting (${short}.${kind}) to (authentication.TokenRequest): unknown conversion`
    throw badRequest(`${kind} in version "${short}" cannot be handled as a TokenRequest: ${why}`)
  }
  const problem = typeProblems(input)
  if (problem !== undefined) throw refused(problem)
  const unknown = Object.entries(MEMBERS).flatMap(([place, names]) => {
    const value = place === '' ? input : at(input, ...place.split('.'))
    const found = isObject(value) ? Object.keys(value).filter((name) => !names.includes(name)) : []
    return found.map((name) => `unknown field "${place === '' ? name : `${place}.${name}`}"`)
  })
  if (unknown.length > 0 && options.fieldValidation === 'Strict') throw refused(`strict decoding error: ${unknown.join(', ')}`)
  if (options.fieldValidation === 'Warn') call.warnings.push(...unknown)
  return input
}

/** In the words of Go's decoder. */
function typeProblems(input: JsonObject): string | undefined {
  const wrong = (value: Json, field: string, type: string) =>
    `json: cannot unmarshal ${typeName(value)} into Go struct field ${field} of type ${type}`
  for (const [name, type] of [
    ['metadata', 'v1.ObjectMeta'],
    ['spec', 'v1.TokenRequestSpec'],
  ] as const) {
    const value = input[name]
    if (value !== undefined && value !== null && !isObject(value)) return wrong(value, `TokenRequest.${name}`, type)
  }
  const { audiences, expirationSeconds: seconds, boundObjectRef: reference } = (isObject(input['spec']) ? input['spec'] : {}) as JsonObject
  const isTexts = (value: Json) => Array.isArray(value) && value.every((one) => typeof one === 'string')
  if (audiences !== undefined && audiences !== null && !isTexts(audiences))
    return wrong(audiences, 'TokenRequestSpec.spec.audiences', '[]string')
  if (seconds !== undefined && seconds !== null && !Number.isInteger(seconds))
    return wrong(seconds, 'TokenRequestSpec.spec.expirationSeconds', 'int64')
  if (reference !== undefined && reference !== null && !isObject(reference))
    return wrong(reference, 'TokenRequestSpec.spec.boundObjectRef', 'v1.BoundObjectReference')
  for (const [name, value] of Object.entries(isObject(reference) ? reference : {}))
    if (typeof value !== 'string' && value !== null) return wrong(value, `BoundObjectReference.spec.boundObjectRef.${name}`, 'string')
  return undefined
}

function typeName(value: Json): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}
