import { expect, it } from 'vitest'
import { testConfig } from '../testing/test-vmcp.ts'
import { certainTools } from './certain-tools.ts'
import { compileWorkflows } from './composite-offers.ts'

it('names the tools of steps without a condition whose failure ends the workflow', () => {
  const loop = (step: object) => ({ type: 'forEach', collection: '{{.params.items}}', itemVar: 'item', step })
  const steps = [
    { id: 'one', tool: 'a.one' },
    { id: 'again', tool: 'a.one' },
    { id: 'asked', type: 'elicitation', message: 'Go on?', schema: { type: 'object', properties: {} } },
    { id: 'maybe', tool: 'a.maybe', condition: '{{.params.really}}', defaultResults: {} },
    { id: 'may-fail', tool: 'a.may-fail', onError: { action: 'continue' }, defaultResults: {} },
    { id: 'each', ...loop({ id: 'inner', type: 'tool', tool: 'a.each' }) },
    { id: 'some', ...loop({ id: 'inner', type: 'tool', tool: 'a.some', condition: '{{.params.really}}' }) },
  ]
  const parameters = { type: 'object', properties: { really: { type: 'boolean' }, items: { type: 'array' } } }
  const compositeTools = [{ name: 'it', description: 'D.', parameters, steps }]
  const config = testConfig({ backends: { a: 'http://h/a' }, config: { compositeTools } })
  const [named] = compileWorkflows(config.compositeTools)
  expect(named && certainTools(named.workflow)).toEqual(['a.one', 'a.each'])
})
