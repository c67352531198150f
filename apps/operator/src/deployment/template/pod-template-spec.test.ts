import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GOOD_TEMPLATES, REFUSED_TEMPLATES } from '../testing/template-cases.ts'
import { podTemplateProblems } from './pod-template-spec.ts'
import { problemBlockers } from './template-problem.ts'

const paths = (template: unknown, patch = false) => podTemplateProblems(template, { at: '', patch }).map(({ path }) => path)

describe('podTemplateProblems', () => {
  it.each(GOOD_TEMPLATES)('takes $name', ({ template }) => {
    expect(podTemplateProblems(template)).toEqual([])
  })

  it.each(REFUSED_TEMPLATES)('finds $name', ({ template, path }) => {
    expect(paths(template)).toContain(path)
  })

  it('names unknown fields by their path, and says of some where they belong', () => {
    const problems = podTemplateProblems({
      metadata: { name: 'x' },
      spec: { containers: [{ name: 'a', image: 'a', imagePullpolicy: 'Never' }] },
    })
    expect(problems).toEqual([
      { path: 'spec.podTemplateSpec.metadata.name', message: 'has no effect in a pod template: only labels and annotations have' },
      {
        path: 'spec.podTemplateSpec.spec.containers[0].imagePullpolicy',
        message: 'is not a field that Kubernetes knows here: correct its spelling or leave it out',
      },
    ])
  })

  it('takes directives in a patch only, and only those it can follow', () => {
    const patch = {
      spec: { $patch: 'replace', containers: [{ name: 'a', $patch: 'delete' }], volumes: [{ name: 'v', $retainKeys: ['name'] }] },
    }
    expect(paths(patch, true)).toEqual([])
    expect(paths(patch)).toEqual(['.spec.$patch', '.spec.containers[0].$patch', '.spec.volumes[0].$retainKeys'])
    expect(paths({ spec: { $patch: 'burn' } }, true)).toEqual(['.spec.$patch'])
    expect(paths({ spec: { '$setElementOrder/tolerations': [] } }, true)).toEqual(['.spec.$setElementOrder/tolerations'])
    expect(paths({ spec: { '$setElementOrder/containers': [{}] } }, true)).toEqual(['.spec.$setElementOrder/containers'])
    expect(paths({ metadata: { '$deleteFromPrimitiveList/finalizers': ['x'] } }, true)).toEqual([
      '.metadata.$deleteFromPrimitiveList/finalizers',
    ])
  })

  it('lets a patch leave out what is required, but not what says which item is meant', () => {
    expect(paths({ spec: { containers: [{ name: 'a' }], nodeSelector: { a: null } } }, true)).toEqual([])
    expect(paths({ spec: { containers: [{ image: 'a' }] } }, true)).toEqual(['.spec.containers[0].name'])
  })

  it('never throws, and never tells a value', () => {
    const secret = 'hunter2-do-not-tell'
    const json = fc.letrec((tie) => ({
      value: fc.oneof({ depthSize: 'small' }, fc.constant(secret), fc.integer(), fc.constant(null), fc.array(tie('value')), tie('object')),
      object: fc.dictionary(
        fc.constantFrom('metadata', 'spec', 'containers', 'name', 'env', 'value', 'volumes', 'labels', 'image', '$patch', 'x'),
        tie('value'),
      ),
    })).object
    fc.assert(
      fc.property(json, fc.boolean(), (template, patch) => {
        const problems = podTemplateProblems(template, { patch })
        expect(JSON.stringify(problems)).not.toContain(secret)
      }),
    )
  })
})

describe('problemBlockers', () => {
  it('tells template problems under PodTemplateValid and others under ConfigurationValid', () => {
    const many = Array.from({ length: 7 }, (_, index) => ({ path: `spec.podTemplateSpec.x${index}`, message: 'is wrong' }))
    const blockers = problemBlockers([...many, { path: 'spec.env[0].name', message: 'is wrong too' }])
    expect(blockers.map(({ condition, reason }) => [condition, reason])).toEqual([
      ['PodTemplateValid', 'InvalidPodTemplateSpec'],
      ['ConfigurationValid', 'InvalidSpec'],
    ])
    expect(blockers[0]?.message).toContain('spec.podTemplateSpec.x0 is wrong')
    expect(blockers[0]?.message).toMatch(/and 2 more$/)
    expect(problemBlockers([])).toEqual([])
  })
})
