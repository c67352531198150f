import { expect, test } from 'vitest'
import { createCatalog, type ServedResource } from './kind-catalog.ts'

const served = (group: string, version: string, kind: string): ServedResource => ({
  type: { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced: true },
  singular: kind.toLowerCase(),
  shortNames: [],
  categories: [],
  verbs: ['list'],
  isPreferred: true,
})
const catalog = createCatalog([
  served('', 'v1', 'Secret'),
  served('', 'v1', 'Service'),
  served('apps', 'v1', 'Deployment'),
  served('toolhive.stacklok.dev', 'v1beta1', 'MCPServer'),
])

test.each([
  ['v1', 'Secrt', 'the server has no Secrt of v1. Did you mean "Secret"?'],
  ['v1', 'secret', 'the server has no secret of v1. Did you mean "Secret"?'],
  ['toolhive.stacklok.dev/v1beta1', 'MCPSever', 'Did you mean "MCPServer"?'],
  ['v1', 'Deployment', 'the server has no Deployment of v1: write apiVersion apps/v1'],
  ['toolhive.stacklok.dev/v1', 'MCPServer', 'write apiVersion toolhive.stacklok.dev/v1beta1'],
  ['example.com/v1', 'Widget', 'install its definition first (thv crds prints ours)'],
])('%s %s: says what was meant, or what to do', (apiVersion, kind, message) => {
  expect(catalog.ofManifest(apiVersion, kind)).toBeUndefined()
  expect(catalog.missing(apiVersion, kind)).toContain(message)
})
