import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const REVISIONS = '/apis/apps/v1/namespaces/{ns}/controllerrevisions'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/{ns}/deployments'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

function revision(name: string, more: JsonObject = {}): JsonObject {
  return { metadata: { name }, data: { spec: { template: { $patch: 'replace', any: [1] } } }, revision: 1, ...more }
}

function deployment(name: string): JsonObject {
  return {
    metadata: { name },
    spec: {
      replicas: 0,
      paused: true,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'app:v1' }] } },
    },
  }
}

/** Revisions of workloads: the kind that holds those of StatefulSets, and how the one of a Deployment is written. */
export const revisionRows: readonly ParityRow[] = [
  row('a revision', post(REVISIONS, revision('one')), get(`${REVISIONS}/one`)),
  row('a revision is moved', post(REVISIONS, revision('moved')), patch(`${REVISIONS}/moved`, { revision: 7 })),
  row('its data is not changed', post(REVISIONS, revision('fixed')), patch(`${REVISIONS}/fixed`, { data: { zone: 1 } })),
  row('its data is put as it is', post(REVISIONS, revision('same')), put(`${REVISIONS}/same`, revision('same', { revision: 2 }))),
  row('a revision without data', post(REVISIONS, { metadata: { name: 'empty' }, revision: 1 })),
  row('a revision below zero and without data', post(REVISIONS, { metadata: { name: 'below' }, revision: -1 })),
  row('a revision below zero', post(REVISIONS, revision('negative', { revision: -1 }))),
  row('a revision without a number', post(REVISIONS, { metadata: { name: 'none' }, data: {} })),
  row('a revision is deleted', post(REVISIONS, revision('gone')), del(`${REVISIONS}/gone`), get(`${REVISIONS}/gone`)),
  row('the table of a revision', post(REVISIONS, revision('shown')), get(`${REVISIONS}/shown`, TABLE)),
  {
    ...row(
      'a status write changes annotations of a deployment and no generation',
      post(DEPLOYMENTS, deployment('by-status')),
      patch(`${DEPLOYMENTS}/by-status/status`, { metadata: { annotations: { note: 'a' } } }),
    ),
    controlled: true,
  },
  {
    ...row(
      'an annotation of a deployment is a new generation',
      post(DEPLOYMENTS, deployment('by-object')),
      patch(`${DEPLOYMENTS}/by-object`, { metadata: { annotations: { note: 'a' } } }),
    ),
    controlled: true,
  },
]
