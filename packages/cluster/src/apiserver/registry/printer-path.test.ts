import { expect, test } from 'vitest'
import { compilePrinterPath } from './printer-path.ts'

const object = {
  spec: { remoteURL: 'https://one', 'a.b': 1 },
  status: {
    conditions: [
      { type: 'Valid', status: 'False' },
      { type: 'Ready', status: 'True' },
    ],
  },
}

test.each([
  ['.spec.remoteURL', ['https://one']],
  ['.spec.none', []],
  [".spec['a.b']", [1]],
  ['.spec.a\\.b', [1]],
  [".spec['remoteUrl','remoteURL']", ['https://one']],
  ['.spec["remoteURL", \'a.b\']', ['https://one', 1]],
  ['.status.conditions[0].type', ['Valid']],
  ['.status.conditions[*].status', ['False', 'True']],
  [".status.conditions[?(@.type=='Ready')].status", ['True']],
])('%s', (path, found) => {
  expect(compilePrinterPath(path)?.(object)).toEqual(found)
})

test('another text is not compiled', () => {
  expect(compilePrinterPath('.spec[')).toBeUndefined()
  expect(compilePrinterPath(".spec['a',]")).toBeUndefined()
})
