import { jsonEqual } from '@thv/kernel/json'
import { invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt } from '../../objects/served-kind.ts'
import { forbiddenValue, invalidValue, problem } from '../../objects/status-error.ts'

export const configMapRules: KindRules = plainRules('subdomain', {
  applyDefaults: withoutEmptyMaps,
  validate: (object, old) => [
    ...keyProblems(object, ['data', 'binaryData']),
    ...sameKeyProblems(object),
    ...immutableProblems(object, old, ['data', 'binaryData']),
  ],
})

export const secretRules: KindRules = plainRules('subdomain', {
  applyDefaults: secretData,
  validate: (object, old) => [
    ...keyProblems(object, ['data']),
    ...typeProblems(object),
    ...(old && object['type'] !== old['type'] ? [invalidValue('type', object['type'], 'field is immutable')] : []),
    ...immutableProblems(object, old, ['data']),
  ],
  selectable: { type: (object) => textAt(object, 'type') },
})

/** An empty map counts as absent, so it has no owner either. */
function withoutEmptyMaps(object: JsonObject): JsonObject {
  const members = Object.entries(object).filter(([name, value]) => name === 'metadata' || emptyIsAbsent(value) !== undefined)
  return Object.fromEntries(members)
}

/** `stringData` is a way of writing `data`; it is never stored. */
function secretData(object: JsonObject): JsonObject {
  const { stringData, ...rest } = withoutEmptyMaps(object)
  const type = textAt(rest, 'type') === '' ? 'Opaque' : (rest['type'] ?? 'Opaque')
  if (!isObject(stringData)) return { ...rest, type }
  const encoded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
  return { ...rest, type, data: { ...objectAt(rest, 'data'), ...Object.fromEntries(encoded) } }
}

const CONFIG_KEY = /^[-._a-zA-Z0-9]+$/
const MAX_DATA_BYTES = 1 << 20
const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

function keyProblems(object: JsonObject, members: readonly string[]): FieldProblem[] {
  const problems: FieldProblem[] = []
  let bytes = 0
  for (const member of members)
    for (const [key, value] of Object.entries(objectAt(object, member))) {
      bytes += Buffer.byteLength(String(value))
      const field = `${member}[${key}]`
      if (key.length > 253) problems.push(invalidValue(field, key, 'must be no more than 253 characters'))
      if (!CONFIG_KEY.test(key)) problems.push(invalidValue(field, key, CONFIG_KEY_TEXT))
      else if (key === '.') problems.push(invalidValue(field, key, "must not be '.'"))
      else if (key === '..') problems.push(invalidValue(field, key, "must not be '..'"))
      else if (key.startsWith('..')) problems.push(invalidValue(field, key, "must not start with '..'"))
    }
  const first = members.length === 1 ? (members[0] ?? '') : '[]'
  if (bytes > MAX_DATA_BYTES) problems.push(problem(first, 'FieldValueTooLong', `Too long: may not be more than ${MAX_DATA_BYTES} bytes`))
  return problems
}

function immutableProblems(object: JsonObject, old: JsonObject | undefined, members: readonly string[]): FieldProblem[] {
  if (old?.['immutable'] !== true) return []
  const changed = members.filter((member) => !jsonEqual(emptyIsAbsent(object[member]), emptyIsAbsent(old[member])))
  const names = object['immutable'] === true ? changed : ['immutable', ...changed]
  return names.map((name) => forbiddenValue(name, 'field is immutable when `immutable` is set'))
}

function emptyIsAbsent(value: Json | undefined): Json | undefined {
  return isObject(value) && Object.keys(value).length === 0 ? undefined : value
}

function sameKeyProblems(object: JsonObject): FieldProblem[] {
  const binary = objectAt(object, 'binaryData')
  return Object.keys(objectAt(object, 'data'))
    .filter((key) => Object.hasOwn(binary, key))
    .map((key) => invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'))
}

/** Keys that a Secret of a known type must hold. */
function typeProblems(secret: JsonObject): FieldProblem[] {
  const data = objectAt(secret, 'data')
  const missing = (...keys: readonly string[]) => keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`))
  switch (secret['type']) {
    case 'kubernetes.io/service-account-token': {
      const name = 'kubernetes.io/service-account.name'
      return textAt(secret, 'metadata', 'annotations', name) === '' ? [required(`metadata.annotations[${name}]`)] : []
    }
    case 'kubernetes.io/dockercfg':
      return [...missing('.dockercfg'), ...jsonProblems(data, '.dockercfg')]
    case 'kubernetes.io/dockerconfigjson':
      return [...missing('.dockerconfigjson'), ...jsonProblems(data, '.dockerconfigjson')]
    case 'kubernetes.io/basic-auth': {
      const both = missing('username', 'password')
      return both.length === 2 ? both : []
    }
    case 'kubernetes.io/ssh-auth':
      return textAt(data, 'ssh-privatekey') === '' ? [required('data[ssh-privatekey]')] : []
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key')
    default:
      return []
  }
}

function jsonProblems(data: JsonObject, key: string): FieldProblem[] {
  const encoded = at(data, key)
  if (typeof encoded !== 'string') return []
  const refuse = (why: string) => [invalid(`data[${key}]`, '<secret contents redacted>', why)]
  try {
    const value = JSON.parse(Buffer.from(encoded, 'base64').toString()) as Json
    if (isObject(value) || value === null) return []
    const type = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
    return refuse(`json: cannot unmarshal ${type} into Go value of type map[string]interface {}`)
  } catch {
    // The message of the parser may quote the secret.
    return refuse(encoded === '' ? 'unexpected end of JSON input' : 'invalid character in JSON input')
  }
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name]
  return isObject(value) ? value : {}
}
