import { isRecord } from '@thv/resources/schema/normalize'
import { type FieldType, fieldsOf } from './pod-schema.ts'
import { applyRules } from './pod-template-rules.ts'
import { scalarOf } from './scalars.ts'
import { TEMPLATE_PATH, type TemplateProblem } from './template-problem.ts'

export interface CheckOptions {
  /** Where the value stands in the object of the user. */
  readonly at?: string
  readonly type?: string
  /** A strategic merge patch: it may leave out what is required, hold directives, and delete by null. */
  readonly patch?: boolean
}

export type Report = (path: string, message: string) => void

/**
 * Finds what the API server would reject in a pod template: wrong types and unknown fields as strict decoding finds them, and, once there
 * are none, the rules that join several fields. Null counts as absent, as it does there.
 */
export function podTemplateProblems(value: unknown, options: CheckOptions = {}): TemplateProblem[] {
  const { at = TEMPLATE_PATH, type = 'PodTemplateSpec', patch = false } = options
  const problems: TemplateProblem[] = []
  const report: Report = (path, message) => void problems.push({ path, message })
  checkOne(value, { type, at, patch, report })
  if (problems.length === 0 && !patch) applyRules(value, { type, at, report })
  return problems
}

interface Place {
  readonly type: string
  readonly at: string
  readonly patch: boolean
  readonly report: Report
}

function checkField(value: unknown, field: FieldType, place: Place): void {
  if (field.shape === 'list') checkList(value, field, place)
  else if (field.shape === 'map') checkMap(value, place)
  else checkOne(value, place)
}

function checkOne(value: unknown, place: Place): void {
  const { type, at, patch, report } = place
  const fields = fieldsOf(type)
  if (fields === undefined) {
    const scalar = scalarOf(type)
    if (scalar !== undefined && !scalar.test(value)) report(at, `expects ${scalar.words}`)
    return
  }
  if (!isRecord(value)) {
    report(at, 'expects an object')
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const field = fields.get(name)
    if (name.startsWith('$')) checkDirective(name, member, place)
    else if (field === undefined) report(`${at}.${name}`, unknownWords(type, name))
    else if (member !== null && member !== undefined) checkField(member, field, { ...place, type: field.type, at: `${at}.${name}` })
  }
  if (patch) return
  for (const [name, { required }] of fields) {
    if (required && !isSet(value[name])) report(`${at}.${name}`, 'must be set')
  }
}

function checkMap(value: unknown, place: Place): void {
  if (!isRecord(value)) {
    place.report(place.at, 'expects an object')
    return
  }
  for (const [key, member] of Object.entries(value)) {
    const at = `${place.at}[${key}]`
    if (key.startsWith('$')) checkDirective(key, member, place)
    else if (member !== null || !place.patch) checkOne(member, { ...place, at })
  }
}

function checkList(value: unknown, { keys }: FieldType, place: Place): void {
  if (!Array.isArray(value)) {
    place.report(place.at, 'expects a list')
    return
  }
  const seen = new Set<string>()
  for (const [index, item] of value.entries()) {
    const at = `${place.at}[${index}]`
    checkOne(item, { ...place, at })
    const [mergeKey] = keys
    if (mergeKey === undefined || !isRecord(item) || (place.patch && item['$patch'] === 'replace')) continue
    if (!isSet(item[mergeKey])) {
      if (place.patch) place.report(`${at}.${mergeKey}`, 'must be set: it says which item is meant')
      continue
    }
    const identity = identityOf(item, keys)
    if (seen.has(identity)) place.report(at, `has the same ${keys.join(' and ')} as an item before it`)
    seen.add(identity)
  }
}

/** An item of `ports` without a protocol is one of TCP. */
export function identityOf(item: Readonly<Record<string, unknown>>, keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => item[key] ?? (key === 'protocol' ? 'TCP' : null)))
}

const PATCH_WORDS = ['merge', 'replace', 'delete']
const ORDER = '$setElementOrder/'

function checkDirective(name: string, value: unknown, { type, at, patch, report }: Place): void {
  const path = `${at}.${name}`
  if (!patch) report(path, 'is a directive of strategic merge, and nothing is merged here: leave it out')
  else if (name === '$patch') {
    if (typeof value !== 'string' || !PATCH_WORDS.includes(value)) report(path, `expects one of ${PATCH_WORDS.join(', ')}`)
  } else if (name === '$retainKeys') {
    if (!Array.isArray(value) || value.some((key) => typeof key !== 'string')) report(path, 'expects a list of field names')
  } else if (name.startsWith(ORDER)) {
    const field = fieldsOf(type)?.get(name.slice(ORDER.length))
    if (field === undefined || field.keys.length === 0) report(path, 'names no list whose items have an order')
    else if (!Array.isArray(value) || value.some((item) => !isRecord(item) || !isSet(item[field.keys[0] ?? '']))) {
      report(path, `expects a list of objects with ${field.keys[0]}`)
    }
  } else report(path, 'is not a directive that is known here')
}

/** Fields that exist in Kubernetes but are invalid in a template of pods that never end. */
const MISPLACED: Readonly<Record<string, string>> = {
  'PodSpec.activeDeadlineSeconds': 'is not allowed for pods of a Deployment or StatefulSet: remove it',
  'PodSpec.ephemeralContainers': 'cannot be set in a template: use kubectl debug on a pod',
}

function unknownWords(type: string, field: string): string {
  if (type === 'TemplateMeta') return 'has no effect in a pod template: only labels and annotations have'
  return MISPLACED[`${type}.${field}`] ?? 'is not a field that Kubernetes knows here: correct its spelling or leave it out'
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}
