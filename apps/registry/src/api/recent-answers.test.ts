import { describe, expect, it } from 'vitest'
import { createRecentAnswers } from './recent-answers.ts'

describe('recent answers', () => {
  it('keeps what is asked for again and again, whatever else comes by', () => {
    const answers = createRecentAnswers<number>(10)
    answers.set('often', 1)
    for (let i = 0; i < 1_000; i++) {
      answers.set(`once ${i}`, i)
      expect(answers.get('often'), `after ${i} others`).toBe(1)
    }
  })

  it('forgets what nobody asked for, and never holds more than two generations', () => {
    const answers = createRecentAnswers<number>(10)
    answers.set('forgotten', 1)
    for (let i = 0; i < 100; i++) {
      answers.set(`other ${i}`, i)
      answers.get(`other ${i - 7}`)
      expect(answers.size).toBeLessThanOrEqual(20)
    }
    expect(answers.get('forgotten')).toBeUndefined()
    expect(answers.get('other 99')).toBe(99)
  })

  it('a newer answer takes the place of the older one', () => {
    const answers = createRecentAnswers<number>(2)
    answers.set('a', 1)
    answers.set('b', 1)
    answers.set('c', 1)
    answers.set('a', 2)
    expect(answers.get('a')).toBe(2)
  })
})
