import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, post, put, row } from './parity-row.ts'

const ACCOUNTS = '/api/v1/namespaces/{ns}/serviceaccounts'
const TOKEN = `${ACCOUNTS}/robot/token`
const PODS = '/api/v1/namespaces/{ns}/pods'
const LOG = `${PODS}/waiting/log`
const request = (spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec,
  ...more,
})
const bound = (reference: JsonObject) => post(TOKEN, request({ boundObjectRef: reference }))
const pod = (name: string, containers: readonly string[], more: JsonObject = {}) =>
  post(PODS, {
    metadata: { name },
    spec: {
      schedulerName: 'nobody',
      automountServiceAccountToken: false,
      containers: containers.map((container) => ({ name: container, image: 'x' })),
      ...more,
    },
  })

/** Tokens of ServiceAccounts, and what logs and attach say before a node is asked. */
export const subresourceRows: readonly ParityRow[] = [
  row('token', post(ACCOUNTS, { metadata: { name: 'robot' } }), post(TOKEN, request({}))),
  row('token: an empty object', post(TOKEN, {})),
  row('token: dry run', post(`${TOKEN}?dryRun=All`, request({}))),
  row('token: audiences and time', post(TOKEN, request({ audiences: ['a', 'b'], expirationSeconds: 601 }))),
  row('token: nulls', post(TOKEN, request({ audiences: null, expirationSeconds: null, boundObjectRef: null }))),
  row('token: too short', post(TOKEN, request({ expirationSeconds: 599 }))),
  row('token: too long', post(TOKEN, request({ expirationSeconds: 2 ** 32 + 1 }))),
  row('token: negative', post(TOKEN, request({ expirationSeconds: -5 }))),
  row('token: no such account', post(`${ACCOUNTS}/nobody/token`, request({}))),
  row('token: no such namespace', post('/api/v1/namespaces/{ns}-none/serviceaccounts/robot/token', request({}))),
  row('token: another name', post(TOKEN, request({}, { metadata: { name: 'other' } }))),
  row('token: another namespace', post(TOKEN, request({}, { metadata: { namespace: 'other' } }))),
  row('token: another kind', post(TOKEN, { apiVersion: 'v1', kind: 'ConfigMap' })),
  row('token: wrong types', post(TOKEN, request({ audiences: 'x' })), post(TOKEN, request({ expirationSeconds: 'x' }))),
  row('token: an unknown field, strictly', post(`${TOKEN}?fieldValidation=Strict`, request({ x: 1 }))),
  row('token: other methods', get(TOKEN), put(TOKEN, request({})), del(TOKEN)),
  row('token: bound to a missing pod', bound({ kind: 'Pod', apiVersion: 'v1', name: 'none' })),
  row('token: bound to a missing secret', bound({ kind: 'Secret', apiVersion: 'v1', name: 'none' })),
  row('token: bound to a missing node', bound({ kind: 'Node', apiVersion: 'v1', name: '{ns}-none' })),
  row('token: bound to no name', bound({ kind: 'Pod', apiVersion: 'v1' })),
  row('token: bound to another kind', bound({ kind: 'ConfigMap', apiVersion: 'v1', name: 'x' })),
  row('token: bound to a kind of a group', bound({ kind: 'Deployment', apiVersion: 'apps/v1', name: 'x' })),
  row(
    'token: bound to a secret',
    post('/api/v1/namespaces/{ns}/secrets', { metadata: { name: 'bound' } }),
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'bound' }),
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'bound', uid: 'another' }),
  ),
  row(
    'token: bound to a pod',
    pod('own', ['c'], { serviceAccountName: 'robot' }),
    bound({ kind: 'Pod', apiVersion: 'v1', name: 'own' }),
    pod('foreign', ['c']),
    bound({ kind: 'Pod', apiVersion: 'v1', name: 'foreign' }),
  ),
  row('log of a pod that waits', pod('waiting', ['c']), get(LOG), get(`${LOG}?follow=true&timestamps=1&previous=true&tailLines=0`)),
  row('log of no pod', get(`${PODS}/none/log`)),
  row(
    'log without or with a wrong container',
    pod('several', ['c', 'd'], { initContainers: [{ name: 'i', image: 'x' }] }),
    get(`${PODS}/several/log`),
    get(`${PODS}/several/log?container=zz`),
    get(`${PODS}/several/log?container=i`),
  ),
  row('log: numbers', ...['tailLines=-1', 'limitBytes=0', 'sinceSeconds=-3', 'sinceSeconds=0'].map((query) => get(`${LOG}?${query}`))),
  row('log: no numbers', ...['tailLines=x', 'limitBytes=1.5', 'sinceTime=abc'].map((query) => get(`${LOG}?${query}`))),
  row('log: several problems', get(`${LOG}?tailLines=-1&limitBytes=-1&sinceSeconds=-1`)),
  row('log: two beginnings', get(`${LOG}?sinceTime=2024-01-01T00:00:00Z&sinceSeconds=3`)),
  row('log: one stream', get(`${LOG}?stream=Stdout`)),
  row('log: other methods', post(LOG, {}), put(LOG, {}), del(LOG)),
  row('attach to a pod that waits', get(`${PODS}/waiting/attach?stdout=1`), post(`${PODS}/waiting/attach?stdout=1`, undefined)),
  row('attach to no pod', get(`${PODS}/none/attach?stdout=1`)),
  row(
    'attach without or with a wrong container',
    get(`${PODS}/several/attach?stdout=1`),
    get(`${PODS}/several/attach?stdout=1&container=zz`),
  ),
  row('attach: other methods', put(`${PODS}/waiting/attach`, {}), del(`${PODS}/waiting/attach`)),
]
