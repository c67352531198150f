import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const NAMESPACES = '/api/v1/namespaces'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles'
const ACCOUNTS = '/api/v1/namespaces/{ns}/serviceaccounts'
const EVENTS = '/api/v1/namespaces/{ns}/events'
const NEW_EVENTS = '/apis/events.k8s.io/v1/namespaces/{ns}/events'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const event = (name: string) => ({
  metadata: { name },
  involvedObject: { kind: 'Thing', namespace: '{ns}', name: 'x', uid: 'u-1' },
  reason: 'Because',
  message: 'It was so.',
  type: 'Normal',
  source: { component: 'tester' },
  count: 2,
})

/** Kinds with rules of their own. */
export const clusterRows: readonly ParityRow[] = [
  row('namespace with an invalid name', post(NAMESPACES, { metadata: { name: 'not.a.label' } })),
  row('namespace', post(NAMESPACES, { metadata: { name: '{ns}-more', labels: { a: 'b' } } }), get(`${NAMESPACES}/{ns}-more`)),
  row('namespace as a table', get(`${NAMESPACES}/{ns}`, TABLE)),
  row(
    'lease',
    post(LEASES, { metadata: { name: 'l1' }, spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } }),
    put(`${LEASES}/l1`, ([first]) => ({ ...first, spec: { holderIdentity: 'you', leaseDurationSeconds: 15 } })),
    put(`${LEASES}/l1`, ([first]) => ({ ...first, spec: { holderIdentity: 'they', leaseDurationSeconds: 15 } })),
    get(`${LEASES}/l1`, TABLE),
    del(`${LEASES}/l1`),
  ),
  row(
    'role',
    post(ROLES, { metadata: { name: 'system:r1' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] }),
    patch(`${ROLES}/system:r1`, { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }] }),
    get(`${ROLES}/system:r1`, TABLE),
    del(`${ROLES}/system:r1`),
  ),
  row('role with an invalid name', post(ROLES, { metadata: { name: 'a%b' }, rules: [] })),
  row('service account', post(ACCOUNTS, { metadata: { name: 'sa1' } }), get(`${ACCOUNTS}/sa1`, TABLE), del(`${ACCOUNTS}/sa1`)),
  row('event', post(EVENTS, event('e1')), get(`${EVENTS}/e1`), get(`${NEW_EVENTS}/e1`)),
  row('event as a table', post(EVENTS, event('e2')), get(`${EVENTS}/e2`, TABLE)),
  row(
    'events of an object',
    post(EVENTS, event('e3')),
    get(`${EVENTS}?fieldSelector=involvedObject.name%3Dx%2CinvolvedObject.uid%3Du-1%2Cmetadata.name%3De3`),
  ),
  row('events by a field that cannot be selected', get(`${EVENTS}?fieldSelector=message%3Dx`)),
  row('health', get('/healthz'), get('/livez'), get('/readyz')),
  row('a path that leads nowhere', get('/nothing')),
]
