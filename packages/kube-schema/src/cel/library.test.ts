import { describe, expect, it } from 'vitest'
import { compileRules } from './rule-tree.ts'
import { runRules } from './run-rules.ts'

/** Undefined when the rule holds, else why not. */
function verdict(rule: string, text = 'x'): string | undefined {
  const { tree, problems } = compileRules({
    type: 'object',
    properties: { text: { type: 'string' } },
    'x-kubernetes-validations': [{ rule, message: 'no' }],
  })
  if (problems[0] || !tree) return problems[0]?.text ?? 'nothing compiled'
  return runRules(tree, { text }, undefined)[0]?.message
}

describe('CEL library of Kubernetes', () => {
  it.each([
    "'ÄbC'.lowerAscii() == 'Äbc' && 'aß'.upperAscii() == 'Aß'",
    "'😀b'.charAt(1) == 'b' && '😀b'.indexOf('b') == 1 && '😀b'.substring(1) == 'b'",
    "'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b' && 'abab'.replace('a', 'x', 1) == 'xbab'",
    "'%s is %d, %.2f, %x'.format(['x', 3, 1.5, 255]) == 'x is 3, 1.50, ff'",
    "'abc'.contains('b') && 'abc'.reverse() == 'cba' && ' a '.trim() == 'a'",
    "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
    '[1, 2, 2].isSorted() && ![2, 1].isSorted() && [1, 2].sum() == 3 && [1, 3, 2].max() == 3 && [3, 1].min() == 1',
    '[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1, 1, 2].distinct() == [1, 2]',
    'sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [2])',
    "url('https://u@h.example:81/a%20b?x=1&x=2').getHost() == 'h.example:81' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://a/b?x=1&x=2').getQuery()['x'] == ['1', '2'] && isURL('/path') && !isURL('no scheme') && url('/a').getScheme() == ''",
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('0.5').compareTo(quantity('500m')) == 0 && quantity('1k') == quantity('1000')",
    "quantity('1.5').isInteger() == false && quantity('2').asInteger() == 2 && quantity('-1').sign() == -1 && !isQuantity('1x')",
    "quantity('1').add(quantity('1')).sub(1).asInteger() == 1",
    "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && ip('::1').isLoopback() && !isIP('1.2.3') && ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
    "cidr('10.0.0.0/8').containsIP('10.2.3.4') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsCIDR('0.0.0.0/0')",
    "cidr('10.1.2.3/8').masked().ip() == ip('10.0.0.0') && cidr('fd00::/8').prefixLength() == 8",
    "duration('1h') > duration('59m') && duration('1m') == duration('60s') && timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')",
    "self.?text.orValue('y') == 'x' && optional.of(1).hasValue()",
    '[self].exists(s, has(s.text)) && has([self][0].text) && has([[self]][0][0].text)',
    "'AbC'.matches('^a(?i)bc$') == false && 'abC'.matches('^a(?i)bc$') && 'x.B'.matches('^(x(?i).b|y)$') && 'Y'.matches('^(x(?i)b|y)$')",
    'type(1) == int && dyn(1) == dyn(1.0) && dyn(1) != dyn("1") && 1 < 1.5',
  ])('%s', (rule) => expect(verdict(rule)).toBeUndefined())

  it.each([
    ["duration(self.text) > duration('1s')", "type conversion error from 'string' to 'google.protobuf.Duration'"],
    ['quantity(self.text).isInteger()', 'quantities must match'],
    ["self.text.substring(5) == ''", 'index out of range: 5'],
    ['self.text.matches(self.text + "(")', 'error parsing regexp'],
  ])('%s fails with a reason', (rule, reason) => expect(verdict(rule)).toContain(reason))

  it('does not know what Kubernetes does not have', () => {
    expect(verdict('self.text.json() == {}')).toContain('compilation failed')
    expect(verdict('request.time > 1')).toContain('compilation failed')
    expect(verdict("[1, 'a'].size() == 2")).toContain('compilation failed')
  })
})
