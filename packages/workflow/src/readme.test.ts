import { readFileSync } from 'node:fs'
import { systemClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { checkWorkflow } from './check/check-workflow.ts'
import { runWorkflow } from './engine/run-workflow.ts'

it('the example of the README gives what it says', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const source = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const code = source.replaceAll(/^import .*$/gm, '')
  const given = { systemClock, checkWorkflow, runWorkflow }
  const run = new Function(...Object.keys(given), `return (async () => { ${code}\nreturn outcome })()`) as (...values: unknown[]) => unknown
  const comment = /^\/\/ (\{ kind.*)$/m.exec(source)?.[1]
  expect(await run(...Object.values(given))).toEqual(new Function(`return ${comment}`)())
})
