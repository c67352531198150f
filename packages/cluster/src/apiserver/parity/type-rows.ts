import { type ParityRow, patch, post, row } from './parity-row.ts'

const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const SECRETS = '/api/v1/namespaces/{ns}/secrets'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/{ns}/deployments'
const WIDGETS = '/apis/parity.example.com/v1/namespaces/{ns}/widgets'

const widget = { apiVersion: 'parity.example.com/v1', kind: 'Widget', spec: { size: 3 } }

/** Values of another type than the field's. */
export const typeRows: readonly ParityRow[] = [
  row('type: a number for a text', post(MAPS, { metadata: { name: 't1' }, data: { a: 1 } })),
  row('type: a text for a map', post(MAPS, { metadata: { name: 't1' }, data: 'x' })),
  row('type: a text for a boolean', post(MAPS, { metadata: { name: 't1' }, immutable: 'yes' })),
  row('type: a number for a label', post(MAPS, { metadata: { name: 't1', labels: { a: 1 } } })),
  row('type: a list for labels', post(MAPS, { metadata: { name: 't1', labels: ['a'] } })),
  row('type: a number for a name', post(MAPS, { metadata: { name: 5 } })),
  row('type: a text for the metadata', post(MAPS, { metadata: 'x' })),
  row('type: a text for finalizers', post(MAPS, { metadata: { name: 't1', finalizers: 'x' } })),
  row('type: null is nothing', post(MAPS, { metadata: { name: 't2', labels: null }, data: null })),
  row('type: bytes that are not base64', post(SECRETS, { metadata: { name: 't1' }, data: { a: '***' } })),
  row('type: a text for a number', post(LEASES, { metadata: { name: 't1' }, spec: { leaseDurationSeconds: 'x' } })),
  row('type: a fraction for a whole number', post(LEASES, { metadata: { name: 't1' }, spec: { leaseDurationSeconds: 1.5 } })),
  row('type: a map for a list', post(ROLES, { metadata: { name: 't1' }, rules: {} })),
  row('type: a text for a list inside', post(ROLES, { metadata: { name: 't1' }, rules: [{ verbs: 'get' }] })),
  row('type: deep inside', post(DEPLOYMENTS, { metadata: { name: 't1' }, spec: { template: { spec: { containers: [{ name: 5 }] } } } })),
  row('type: a patch to a wrong type', post(MAPS, { metadata: { name: 't3' } }), patch(`${MAPS}/t3`, { data: { a: 1 } })),
  row('type: unknown fields are dropped', post(MAPS, { metadata: { name: 't4', unknown: 1 }, more: 2 })),
  row('type: unknown fields, strictly', post(`${MAPS}?fieldValidation=Strict`, { metadata: { name: 't5', unknown: 1 }, more: 2 })),
  row('type: custom: a number for a label', post(WIDGETS, { ...widget, metadata: { name: 't1', labels: { a: 1 } } })),
  row('type: custom: a text for the metadata', post(WIDGETS, { ...widget, metadata: 'x' })),
]
