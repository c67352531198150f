import { describe, expect, it } from 'vitest'
import { entryPointOffences, judgeEntryPoint, type PackageEntryPoints } from './entry-points.ts'

const kernel: PackageEntryPoints = {
  name: 'kernel',
  exports: { './clock': './src/clock.ts', './testing/*': './src/testing/*.ts' },
  files: ['./src/clock.ts', './src/testing/fake.ts', './src/internal.ts'],
}
const packages = new Map([['kernel', kernel]])

describe('judgeEntryPoint', () => {
  it.each(['@thv/kernel/clock', '@thv/kernel/testing/fake', '@thv/unknown/x', 'node:fs', './clock.ts'])('accepts %s', (specifier) =>
    expect(judgeEntryPoint('apps/cli/src/x.ts', specifier, packages)).toBeUndefined(),
  )

  it.each([
    ['@thv/kernel/internal', '"./internal": "./src/internal.ts"'],
    ['@thv/kernel', '".": "./src/index.ts"'],
  ])('rejects %s and says what to add', (specifier, fix) =>
    expect(judgeEntryPoint('apps/cli/src/x.ts', specifier, packages)).toContain(fix),
  )
})

describe('entryPointOffences', () => {
  it('accepts named files and opened folders', () => expect(entryPointOffences(kernel)).toEqual([]))

  it.each([
    [{ './*': './src/*.ts' }, 'name the entry points'],
    [{ './gone': './src/gone.ts' }, 'does not exist'],
    [{ './gone/*': './src/gone/*.ts' }, 'does not exist'],
  ])('rejects %j', (exports, why) => expect(entryPointOffences({ ...kernel, exports })).toEqual([expect.stringContaining(why)]))
})
