import { describe, expect, it } from 'vitest'
import { folderOffences, MAX_FILES, relativeValueImports } from './folder-rules.ts'

const file = (path: string, text = '') => ({ path, text })

describe('folderOffences', () => {
  it('names the imports of two folders that import each other', () => {
    const offences = folderOffences([
      file('packages/x/src/a/one.ts', "import { two } from '../b/two.ts'"),
      file('packages/x/src/b/two.ts', "import { three } from '../a/three.ts'"),
      file('packages/x/src/a/three.ts'),
    ])
    expect(offences).toHaveLength(1)
    expect(offences[0]).toContain('packages/x/src/a/one.ts → packages/x/src/b/two.ts')
    expect(offences[0]).toContain('move the shared file down')
  })

  it('finds a circle of three folders, and a folder that both composes its subfolder and is used by it', () => {
    const three = [
      file('apps/x/src/a/a.ts', "import { b } from '../b/b.ts'"),
      file('apps/x/src/b/b.ts', "import { c } from '../c/c.ts'"),
      file('apps/x/src/c/c.ts', "import { a } from '../a/a.ts'"),
    ]
    expect(folderOffences(three)).toHaveLength(1)
    const nested = [
      file('apps/x/src/main.ts', "import { a } from './a/a.ts'"),
      file('apps/x/src/a/a.ts', "import { shared } from '../shared.ts'"),
    ]
    expect(folderOffences(nested)).toHaveLength(1)
  })

  it('ignores types, tests and imports that go one way', () => {
    expect(
      folderOffences([
        file('packages/x/src/a/one.ts', "import { two } from '../b/two.ts'"),
        file('packages/x/src/b/two.ts', "import type { One } from '../a/one.ts'\nimport { type Three, type Four } from '../a/three.ts'"),
        file('packages/x/src/b/two.test.ts', "import { one } from '../a/one.ts'"),
      ]),
    ).toEqual([])
  })

  it('names a folder with too many files; tests do not count', () => {
    const many = Array.from({ length: MAX_FILES + 1 }, (_, at) => file(`packages/x/src/f${at}.ts`))
    expect(folderOffences(many)).toEqual([expect.stringContaining(`packages/x/src: ${MAX_FILES + 1} source files`)])
    expect(folderOffences([...many.slice(1), file('packages/x/src/f.test.ts')])).toEqual([])
  })
})

it('reads value imports and re-exports, also over several lines', () => {
  const text =
    "import {\n  a,\n  type B,\n} from './a.ts'\nexport { c } from '../c.ts'\nimport './side.ts'\nexport type { D } from './d.ts'"
  expect(relativeValueImports(text)).toEqual(['./a.ts', '../c.ts', './side.ts'])
})
