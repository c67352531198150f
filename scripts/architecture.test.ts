import { describe, expect, it } from 'vitest'
import { importsOf, judge } from './architecture.ts'

describe('judge', () => {
  it.each([
    ['packages/kube/src/client.ts', '@thv/kernel/errors'],
    ['packages/resources/src/kinds.ts', '@thv/kube/objects/types'],
    ['packages/mcp/src/client.ts', '@thv/http/outbound/outbound'],
    ['packages/kube/src/client.ts', './types.ts'],
    ['packages/kube/src/x/client.ts', '../types.ts'],
    ['packages/kube/src/client.cluster.test.ts', '@thv/testkit/cluster/test-cluster'],
    ['apps/cli/src/main.ts', '@thv/resources'],
  ])('%s may import %s', (file, specifier) => expect(judge(file, specifier)).toBeUndefined())

  it.each([
    ['packages/kernel/src/clock.ts', '@thv/kube', 'layers below'],
    ['packages/kube/src/client.ts', '@thv/http/server/server', 'layers below'],
    ['packages/http/src/server.ts', '@thv/mcp/sse', 'layers below'],
    ['packages/kube/src/client.ts', '@thv/resources', 'layers below'],
    ['packages/kube/src/client.ts', '@thv/testkit/cluster/api-server', 'only tests may'],
    ['packages/kube/src/client.ts', '../../kernel/src/clock.ts', 'outside of its package'],
    ['apps/operator/src/main.ts', '@thv/cli', 'apps are not imported'],
    ['packages/new/src/x.ts', '@thv/kernel/clock', 'has no layer'],
  ])('%s must not import %s', (file, specifier, why) => expect(judge(file, specifier)).toContain(why))
})

it('reads static, re-exporting, side-effect and dynamic imports', () => {
  const text = `import a from 'a'\nimport type { B } from "b"\nimport {\n  c,\n} from 'c'\nexport { d } from 'd'\nimport 'e'\nconst f = await import('f')\nconst notAnImport = 'import x'`
  expect(importsOf(text).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})
