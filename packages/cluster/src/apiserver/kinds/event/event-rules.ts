import { jsonEqual } from '@thv/kernel/json'
import { invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import { qualifiedNameProblems } from '../../objects/field-checks.ts'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt } from '../../objects/served-kind.ts'
import { problem } from '../../objects/status-error.ts'

const OBJECT_FIELDS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const SELECTABLE: NonNullable<KindRules['selectable']> = {
  ...Object.fromEntries(
    OBJECT_FIELDS.map((name) => [`involvedObject.${name}`, (event: JsonObject) => textAt(event, 'involvedObject', name)]),
  ),
  reason: (event) => textAt(event, 'reason'),
  reportingComponent: (event) => textAt(event, 'reportingComponent'),
  source: (event) => textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
  type: (event) => textAt(event, 'type'),
}

const GROUPED_SELECTABLE: NonNullable<KindRules['selectable']> = {
  ...Object.fromEntries(OBJECT_FIELDS.map((name) => [`regarding.${name}`, (event: JsonObject) => textAt(event, 'involvedObject', name)])),
  reason: (event) => textAt(event, 'reason'),
  reportingController: (event) => textAt(event, 'reportingComponent'),
  type: (event) => textAt(event, 'type'),
}

/** Of the stored form, which is that of the core group. Old clients write what they like there, even as names. */
export const eventRules: KindRules = plainRules('path', {
  createOnUpdate: true,
  applyDefaults: withEventDefaults,
  validate: (event) => commonProblems(event, 'reportingComponent'),
  selectable: SELECTABLE,
})

/** The same objects by way of `events.k8s.io`, which is strict. */
export const groupedEventRules: KindRules = plainRules('subdomain', {
  createOnUpdate: true,
  applyDefaults: withEventDefaults,
  validate: (event, old) => [
    ...commonProblems(event, 'reportingController'),
    ...(old === undefined ? [...seriesProblems(event), ...newProblems(event)] : changeProblems(event, old)),
  ],
  selectable: GROUPED_SELECTABLE,
})

const EMPTY: EmptyFields = { kept: new Set(['lastObservedTime']), maps: new Set(['metadata']) }

/** Members that the real server always writes. */
function withEventDefaults(event: JsonObject): JsonObject {
  const tidy = withoutEmpty(event, EMPTY)
  const object = (name: string) => (isObject(tidy[name]) ? tidy[name] : {})
  const series = tidy['series']
  return {
    eventTime: null,
    firstTimestamp: null,
    lastTimestamp: null,
    reportingComponent: '',
    reportingInstance: '',
    ...tidy,
    involvedObject: object('involvedObject'),
    source: object('source'),
    ...(isObject(series) ? { series: { lastObservedTime: null, ...series } } : {}),
  }
}

const MAX_TEXT = 128
const MAX_MESSAGE = 1_024

function commonProblems(event: JsonObject, reporter: string): FieldProblem[] {
  const own = textAt(event, 'metadata', 'namespace')
  const other = textAt(event, 'involvedObject', 'namespace')
  const elsewhere = [invalid('involvedObject.namespace', other, 'does not match event.namespace')]
  // An event without its time is one of old, whose object is always near.
  if (!hasTime(event)) return (other === '' && own === 'default') || other === own ? [] : elsewhere
  const component = textAt(event, 'reportingComponent')
  return [
    ...(other === '' && own !== 'default' && own !== 'kube-system' ? elsewhere : []),
    ...(component === '' ? [required(reporter)] : []),
    ...qualifiedNameProblems(reporter, component),
    ...['reportingInstance', 'action', 'reason'].flatMap((name) => textProblems(event, name)),
    ...(textAt(event, 'message').length > MAX_MESSAGE ? [tooLong('message', MAX_MESSAGE)] : []),
  ]
}

function textProblems(event: JsonObject, name: string): FieldProblem[] {
  const text = textAt(event, name)
  if (text === '') return [required(name)]
  return text.length > MAX_TEXT ? [tooLong(name, MAX_TEXT)] : []
}

const tooLong = (name: string, max: number): FieldProblem => invalid(name, '', `can have at most ${max} characters`)
const hasTime = (event: JsonObject): boolean => textAt(event, 'eventTime') !== ''

function newProblems(event: JsonObject): FieldProblem[] {
  const type = textAt(event, 'type')
  const unset = (name: string, is: boolean) => (is ? [invalid(name, '', 'needs to be unset')] : [])
  const source = event['source']
  return [
    ...(hasTime(event) ? [] : [required('eventTime')]),
    ...(type === 'Normal' || type === 'Warning' ? [] : [invalid('type', '', `has invalid value: ${type}`)]),
    ...unset('firstTimestamp', textAt(event, 'firstTimestamp') !== ''),
    ...unset('lastTimestamp', textAt(event, 'lastTimestamp') !== ''),
    ...unset('count', typeof event['count'] === 'number' && event['count'] !== 0),
    ...unset('source', isObject(source) && Object.keys(source).length > 0),
  ]
}

function seriesProblems(event: JsonObject): FieldProblem[] {
  if (!isObject(event['series'])) return []
  const count = at(event, 'series', 'count')
  return [
    ...(typeof count === 'number' && count >= 2 ? [] : [invalid('series.count', '', 'should be at least 2')]),
    ...(textAt(event, 'series', 'lastObservedTime') === '' ? [required('series.lastObservedTime')] : []),
  ]
}

/** Fields that the real server names when it rejects a change, in its order; all but the series are immutable. */
const FIXED = [
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingInstance',
]

function changeProblems(event: JsonObject, old: JsonObject): FieldProblem[] {
  const immutable = 'field is immutable'
  const changed = (name: string) => !jsonEqual(event[name], old[name])
  return [
    ...(changed('series') ? seriesProblems(event) : []),
    ...(changed('involvedObject')
      ? [problem('involvedObject', 'FieldValueInvalid', `Invalid value: ${goReference(event)}: ${immutable}`)]
      : []),
    ...FIXED.filter(changed).map((name) => invalid(name, event[name] ?? '', immutable)),
    ...(changed('reportingComponent') ? [invalid('reportingController', event['reportingComponent'] ?? '', immutable)] : []),
  ]
}

/** The reference as the real server shows it: all its members, under the names that they have inside. */
function goReference(event: JsonObject): string {
  const names = ['Kind', 'Namespace', 'Name', 'UID', 'APIVersion', 'ResourceVersion', 'FieldPath']
  const inside = (name: string) =>
    name === 'UID' ? 'uid' : name === 'APIVersion' ? 'apiVersion' : `${name[0]?.toLowerCase()}${name.slice(1)}`
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, textAt(event, 'involvedObject', inside(name))])))
}
