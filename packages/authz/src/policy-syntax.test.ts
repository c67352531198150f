import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkPolicies } from './policy-syntax.ts'

const PERMIT = 'permit(principal, action, resource);'
const ALICE = { uid: { type: 'Client', id: 'alice' }, attrs: { level: 3 }, parents: [{ type: 'THVGroup', id: 'dev' }] }

const messagesOf = (policies: string[], entities: unknown = []) =>
  checkPolicies(policies, typeof entities === 'string' ? entities : JSON.stringify(entities)).map(
    ({ path, message }) => `${path}: ${message}`,
  )

describe('checkPolicies', () => {
  it('takes policies and entities that Cedar takes', () => {
    const policies = [
      PERMIT,
      'forbid(principal, action == Action::"call_tool", resource == Tool::"drop") unless { context.claim_role == "admin" };',
      '// a comment\n@id("x")\npermit(principal in THVGroup::"dev", action, resource is Tool) when { resource has readOnlyHint && resource.readOnlyHint };',
    ]
    expect(checkPolicies(policies, JSON.stringify([ALICE]))).toEqual([])
  })

  it('says what is wrong, in which policy and where, for all at once', () => {
    expect(messagesOf(['permit(principal, action, resource)', PERMIT, 'permit(principal,\n  action, ressource);'])).toEqual([
      'policies[0]: unexpected end of input at line 1, column 36 (expected `;` or identifier)',
      expect.stringMatching(/^policies\[2\]: .*ressource.* at line 2, column 11/),
    ])
  })

  it('counts characters, not bytes, in the column', () => {
    expect(messagesOf(['permit(principal == Client::"é", action, resource) whn { true };'])).toEqual([
      expect.stringContaining(' at line 1, column 52'),
    ])
  })

  it.each([
    ['no policy', [], /^policies: at least one policy/],
    ['an empty one', ['  '], /^policies\[0\]: is empty/],
    ['a comment only', ['// nothing'], /unexpected end of input/],
    ['two in one entry', [`${PERMIT} ${PERMIT}`], /unexpected token `permit`/],
    ['a template', ['permit(principal == ?principal, action, resource);'], /template.*removing the template slot/],
    ['an unknown function', ['permit(principal, action, resource) when { nofn("x") };'], /`nofn` is not a valid function/],
  ])('refuses %s', (_, policies, message) => {
    expect(messagesOf(policies)).toEqual([expect.stringMatching(message)])
  })

  it.each([
    ['what is not JSON', '[{', 'is not JSON'],
    ['an object', {}, 'is not a JSON array'],
    ['an entity without attributes', [{ uid: { type: 'A', id: 'b' } }], /missing field `attrs`/],
    ['two entities of one name', [ALICE, { ...ALICE, attrs: {} }], /duplicate entity entry/],
    ['a ring of parents', [{ ...ALICE, parents: [ALICE.uid] }], /cycle/],
  ])('refuses as entities %s', (_, entities, message) => {
    expect(messagesOf([PERMIT], entities)).toEqual([
      expect.stringMatching(message instanceof RegExp ? message : `^entities_json: ${message}$`),
    ])
  })

  const deep = (depth: number, open: string, close: string) =>
    `permit(principal, action, resource) when { ${open.repeat(depth)}true${close.repeat(depth)} };`

  it('refuses brackets nested too deeply, before the engine sees them', () => {
    expect(messagesOf([deep(98, '(', ')')])).toEqual([])
    expect(messagesOf([deep(100, '(', ')')])).toEqual(['policies[0]: has brackets nested more than 100 deep'])
    const inText = `permit(principal, action, resource) when { context.x == "${'('.repeat(500)}" }; // ${'['.repeat(500)}`
    expect(messagesOf([inText])).toEqual([])
    let nested: unknown = 1
    for (let i = 0; i < 5_000; i++) nested = [nested]
    expect(messagesOf([PERMIT], [{ ...ALICE, attrs: { nested } }])).toEqual(['entities_json: has brackets nested more than 100 deep'])
  })

  it('survives a policy that crashes the engine: the next one is judged as usual', () => {
    const deadly = deep(5_000, 'if true then ', ' else true')
    expect(messagesOf([PERMIT, deadly, 'nonsense'])).toEqual([
      'policies[1]: is too large or nested too deeply for the policy engine',
      expect.stringMatching(/^policies\[2\]: unexpected end of input/),
    ])
    expect(messagesOf([PERMIT])).toEqual([])
  })

  it('never throws, whatever it is given', () => {
    const token = fc.constantFrom(
      'permit',
      'forbid',
      '(',
      ')',
      'principal',
      ',',
      'action',
      'resource',
      ';',
      'when',
      '{',
      '}',
      '"',
      '\\',
      '?',
      '\n',
      '==',
      'A::"b"',
      '@',
    )
    const policy = fc.oneof(
      fc.string(),
      fc.array(token, { maxLength: 30 }).map((tokens) => tokens.join(' ')),
    )
    fc.assert(
      fc.property(fc.array(policy, { maxLength: 3 }), fc.oneof(fc.string(), fc.json()), (policies, entities) => {
        for (const { path, message } of checkPolicies(policies, entities)) {
          expect(path).toMatch(/^(policies(\[\d+\])?|entities_json)$/)
          expect(message).not.toBe('')
        }
      }),
      { numRuns: 200 },
    )
  })
})
