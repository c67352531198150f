import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const GROUP = 'parity.example.com'
const WIDGETS = `/apis/${GROUP}/v1/namespaces/{ns}/widgets`
const BETA = `/apis/${GROUP}/v1beta1/namespaces/{ns}/widgets`
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const schema: JsonObject = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 10 },
        colour: { type: 'string', enum: ['red', 'green'], default: 'red' },
        replicas: { type: 'integer' },
        notes: { type: 'array', items: { type: 'string' } },
      },
      'x-kubernetes-validations': [{ rule: 'self.size == oldSelf.size', message: 'size cannot change' }],
    },
    status: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        selector: { type: 'string' },
        phase: { type: 'string' },
        conditions: {
          type: 'array',
          items: { type: 'object', properties: { type: { type: 'string' }, status: { type: 'string' } } },
        },
      },
    },
  },
}

const version = (name: string, storage: boolean): JsonObject => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: schema },
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  },
  additionalPrinterColumns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Notes', type: 'string', jsonPath: '.spec.notes', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})

/** The definition that the rows work on; to be created before them. */
export const widgetDefinition: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', shortNames: ['wg'], categories: ['toys'] },
    versions: [version('v1', true), version('v1beta1', false)],
  },
}

const widget = (name: string, spec: JsonObject = { size: 3 }, more: JsonObject = {}): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Widget',
  metadata: { name },
  spec,
  ...more,
})
const gadgets = (openAPIV3Schema: JsonObject): JsonObject => ({
  metadata: { name: `gadgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Cluster',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
  },
})
const last = (earlier: readonly JsonObject[]): JsonObject => earlier.at(-1) ?? {}

/** Verbs on a kind of a definition: schema, versions, subresources. */
export const customRows: readonly ParityRow[] = [
  row('custom: create, get', post(WIDGETS, widget('w1')), get(`${WIDGETS}/w1`)),
  row('custom: get under the other version', post(WIDGETS, widget('w2')), get(`${BETA}/w2`)),
  row('custom: create under the other version', post(BETA, { ...widget('w3'), apiVersion: `${GROUP}/v1beta1` }), get(`${WIDGETS}/w3`)),
  row('custom: create without kind', post(WIDGETS, { metadata: { name: 'w4' }, spec: { size: 1 } })),
  row('custom: create of another kind', post(WIDGETS, { ...widget('w4'), kind: 'Gadget' })),
  row('custom: create of another version', post(WIDGETS, { ...widget('w4'), apiVersion: `${GROUP}/v1beta1` })),
  row('custom: what is required', post(WIDGETS, widget('w5', {}))),
  row('custom: several mistakes', post(WIDGETS, widget('w5', { size: 11, colour: 'blue' }))),
  row('custom: a wrong type', post(WIDGETS, widget('w5', { size: 'big' }))),
  row('custom: an unknown field is dropped', post(WIDGETS, widget('w6', { size: 1, unknown: true }))),
  row('custom: an unknown field, strictly', post(`${WIDGETS}?fieldValidation=Strict`, widget('w7', { size: 1, unknown: true }))),
  row(
    'custom: a patch to an unknown field, strictly',
    post(WIDGETS, widget('w7')),
    patch(`${WIDGETS}/w7?fieldValidation=Strict`, { spec: { unknown: 1 } }),
  ),
  row('custom: a status is dropped', post(WIDGETS, widget('w8', { size: 1 }, { status: { phase: 'Ready' } }))),
  row('custom: an invalid name', post(WIDGETS, widget('Not_A_Name'))),
  row('custom: put without a version', post(WIDGETS, widget('w9')), put(`${WIDGETS}/w9`, widget('w9', { size: 3, colour: 'green' }))),
  row(
    'custom: a new spec is a new generation',
    post(WIDGETS, widget('w10')),
    put(`${WIDGETS}/w10`, (e) => ({ ...last(e), spec: { size: 3, colour: 'green' } })),
    patch(`${WIDGETS}/w10`, { metadata: { labels: { a: 'b' } } }),
  ),
  row('custom: a transition rule', post(WIDGETS, widget('w11')), patch(`${WIDGETS}/w11`, { spec: { size: 4 } })),
  row(
    'custom: status',
    post(WIDGETS, widget('w12')),
    put(`${WIDGETS}/w12/status`, (e) => ({ ...last(e), spec: { size: 3, colour: 'green' }, status: { phase: 'Ready' } })),
    patch(`${WIDGETS}/w12/status`, { metadata: { labels: { a: 'b' } }, status: { replicas: 2 } }),
    patch(`${WIDGETS}/w12`, { status: { phase: 'Other' }, spec: { colour: 'green' } }),
    get(`${WIDGETS}/w12/status`),
  ),
  row('custom: an invalid status', post(WIDGETS, widget('w13')), patch(`${WIDGETS}/w13/status`, { status: { phase: 3 } })),
  row(
    'custom: scale',
    post(WIDGETS, widget('w14', { size: 3, replicas: 2 })),
    get(`${WIDGETS}/w14/scale`),
    patch(`${WIDGETS}/w14/scale`, { spec: { replicas: 5 } }),
    put(`${WIDGETS}/w14/scale`, (e) => ({ ...last(e), spec: { replicas: 4 } })),
    get(`${WIDGETS}/w14`),
    patch(`${WIDGETS}/w14/scale`, { spec: { replicas: -1 } }),
  ),
  row('custom: strategic patch', post(WIDGETS, widget('w15')), patch(`${WIDGETS}/w15`, { spec: { colour: 'green' } }, 'strategic')),
  row('custom: delete', post(WIDGETS, widget('w16')), del(`${WIDGETS}/w16`), get(`${WIDGETS}/w16`)),
  row('custom: delete in the foreground', post(WIDGETS, widget('w17')), del(`${WIDGETS}/w17`, { propagationPolicy: 'Foreground' })),
  row(
    'custom: delete with a finalizer',
    post(WIDGETS, { ...widget('w18'), metadata: { name: 'w18', finalizers: ['example.com/hold'] } }),
    del(`${WIDGETS}/w18`),
    patch(`${WIDGETS}/w18`, { metadata: { finalizers: [] } }),
    get(`${WIDGETS}/w18`),
  ),
  row(
    'custom: table',
    post(WIDGETS, widget('w19', { size: 3, notes: ['a', 'b'] })),
    patch(`${WIDGETS}/w19/status`, {
      status: {
        phase: 'Ready',
        conditions: [
          { type: 'Other', status: 'x' },
          { type: 'Ready', status: 'True' },
        ],
      },
    }),
    get(`${WIDGETS}/w19`, TABLE),
  ),
  row(
    'custom: list',
    post(WIDGETS, { ...widget('w20'), metadata: { name: 'w20', labels: { l: 'x' } } }),
    get(`${WIDGETS}?labelSelector=l%3Dx`),
  ),
  row('custom: a field that cannot be selected', get(`${WIDGETS}?fieldSelector=spec.size%3D1`)),
  row('definition under a wrong name', post(CRDS, { ...widgetDefinition, metadata: { name: 'wrong.example.com' } })),
  row('definition that is not structural', post(CRDS, gadgets({ type: 'object', properties: { spec: {} } }))),
  row(
    'definition with a default that does not fit',
    post(CRDS, gadgets({ type: 'object', properties: { a: { type: 'string', default: 3 } } })),
  ),
  row(
    'definition with a rule that does not compile',
    post(CRDS, gadgets({ type: 'object', 'x-kubernetes-validations': [{ rule: 'self.nothing > 1' }] })),
  ),
  row('definition that is not there', get(`${CRDS}/nothings.example.com`)),
  row('definition that exists', post(CRDS, widgetDefinition)),
  row('discovery of the group', get(`/apis/${GROUP}`)),
  row('discovery of the version', get(`/apis/${GROUP}/v1`)),
]
