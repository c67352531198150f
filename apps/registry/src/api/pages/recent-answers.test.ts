import { describe, expect, it } from 'vitest'
import { createRecentAnswers, type RecentAnswers } from './recent-answers.ts'

function offerTwice(answers: RecentAnswers<number>, question: string, answer: number): void {
  answers.offer(question, answer)
  answers.offer(question, answer)
}

describe('recent answers', () => {
  it('keeps what is offered twice', () => {
    const answers = createRecentAnswers<number>(10)
    answers.offer('a', 1)
    expect(answers.get('a')).toBeUndefined()
    answers.offer('b', 2)
    answers.offer('a', 1)
    expect([answers.get('a'), answers.get('b'), answers.size]).toEqual([1, undefined, 1])
  })

  it('keeps what is asked for again and again, whatever else comes by', () => {
    const answers = createRecentAnswers<number>(10)
    offerTwice(answers, 'often', 1)
    for (let i = 0; i < 1_000; i++) {
      offerTwice(answers, `rarely ${i}`, i)
      expect(answers.get('often'), `after ${i} others`).toBe(1)
    }
  })

  it('forgets unused answers, and never holds more than two generations', () => {
    const answers = createRecentAnswers<number>(10)
    offerTwice(answers, 'forgotten', 1)
    for (let i = 0; i < 100; i++) {
      offerTwice(answers, `other ${i}`, i)
      answers.get(`other ${i - 7}`)
      expect(answers.size).toBeLessThanOrEqual(20)
    }
    expect(answers.get('forgotten')).toBeUndefined()
    expect(answers.get('other 99')).toBe(99)
  })

  it('a newer answer takes the place of the older one', () => {
    const answers = createRecentAnswers<number>(2)
    for (const name of ['a', 'b', 'c']) offerTwice(answers, name, 1)
    offerTwice(answers, 'a', 2)
    expect(answers.get('a')).toBe(2)
  })
})
