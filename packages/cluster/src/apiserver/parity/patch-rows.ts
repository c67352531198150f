import { get, type ParityRow, patch, post, row } from './parity-row.ts'

const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const WIDGETS = '/apis/parity.example.com/v1/namespaces/{ns}/widgets'

const map = (name: string, data: Record<string, string> = { a: '1' }) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })
const widget = (name: string, spec: Record<string, string | number>) => ({
  apiVersion: 'parity.example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
})
const as = (path: string, manager: string, more = '') => `${path}?fieldManager=${manager}${more}`

/** The four kinds of patch. */
export const patchRows: readonly ParityRow[] = [
  row(
    'json patch',
    post(MAPS, map('j1')),
    patch(
      `${MAPS}/j1`,
      [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'replace', path: '/data/a', value: '2' },
        { op: 'add', path: '/metadata/labels', value: { x: 'y' } },
      ],
      'json',
    ),
  ),
  row('json patch whose test fails', post(MAPS, map('j2')), patch(`${MAPS}/j2`, [{ op: 'test', path: '/data/a', value: '9' }], 'json')),
  row('json patch of what is not there', post(MAPS, map('j3')), patch(`${MAPS}/j3`, [{ op: 'remove', path: '/data/x' }], 'json')),
  row('json patch that is none', post(MAPS, map('j4')), patch(`${MAPS}/j4`, { op: 'remove' }, 'json')),
  row(
    'strategic patch',
    post(MAPS, map('st1')),
    patch(`${MAPS}/st1`, { data: { a: null, b: '2' }, metadata: { finalizers: ['example.com/x'] } }, 'strategic'),
  ),
  row('patch with force', post(MAPS, map('f1')), patch(`${MAPS}/f1?force=true`, { data: { a: '2' } })),
  row('apply without a manager', patch(`${MAPS}/a0`, map('a0'), 'apply')),
  row('apply with managed fields', patch(as(`${MAPS}/a0`, 'one'), { ...map('a0'), metadata: { name: 'a0', managedFields: [] } }, 'apply')),
  row(
    'apply makes and changes',
    patch(as(`${MAPS}/a1`, 'one'), map('a1'), 'apply'),
    patch(as(`${MAPS}/a1`, 'one'), map('a1', { b: '2' }), 'apply'),
  ),
  row('apply again', patch(as(`${MAPS}/a2`, 'one'), map('a2'), 'apply'), patch(as(`${MAPS}/a2`, 'one'), map('a2'), 'apply')),
  row(
    'apply by two managers',
    patch(as(`${MAPS}/a3`, 'one'), map('a3', { a: '1', b: '1' }), 'apply'),
    patch(as(`${MAPS}/a3`, 'two'), map('a3', { b: '2', c: '2' }), 'apply'),
    patch(as(`${MAPS}/a3`, 'two', '&force=true'), map('a3', { b: '2', c: '2' }), 'apply'),
    patch(as(`${MAPS}/a3`, 'one'), map('a3', { a: '1' }), 'apply'),
    get(`${MAPS}/a3`),
  ),
  row('apply over an update', post(as(MAPS, 'maker'), map('a4')), patch(as(`${MAPS}/a4`, 'one'), map('a4', { a: '2' }), 'apply')),
  row('apply under another name', patch(as(`${MAPS}/a5`, 'one'), map('a6'), 'apply')),
  row('apply to something invalid', patch(as(`${MAPS}/a7`, 'one'), map('a7', { 'bad key!': 'x' }), 'apply')),
  row('apply as a dry run', patch(as(`${MAPS}/a8`, 'one', '&dryRun=All'), map('a8'), 'apply'), get(`${MAPS}/a8`)),
  row(
    'custom: apply',
    patch(as(`${WIDGETS}/wa1`, 'one'), widget('wa1', { size: 3 }), 'apply'),
    patch(as(`${WIDGETS}/wa1`, 'two'), widget('wa1', { size: 3, colour: 'green' }), 'apply'),
    patch(as(`${WIDGETS}/wa1`, 'one'), widget('wa1', { size: 3, colour: 'red' }), 'apply'),
  ),
  row('custom: apply something invalid', patch(as(`${WIDGETS}/wa2`, 'one'), widget('wa2', { size: 0 }), 'apply')),
  row(
    'custom: apply a status',
    post(WIDGETS, widget('wa3', { size: 3 })),
    patch(as(`${WIDGETS}/wa3/status`, 'one'), { ...widget('wa3', { size: 4 }), status: { phase: 'Ready' } }, 'apply'),
  ),
  row(
    'custom: json patch',
    post(WIDGETS, widget('wa4', { size: 3 })),
    patch(`${WIDGETS}/wa4`, [{ op: 'replace', path: '/spec/colour', value: 'green' }], 'json'),
  ),
]
