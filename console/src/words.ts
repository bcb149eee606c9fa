// Words in the language that was chosen; the page is drawn anew when it changes.
import { en, type Words } from "./en.ts";
import { zh } from "./zh.ts";

const LANGUAGES = { en, zh };
export type Language = keyof typeof LANGUAGES;
export const NAMES: Record<Language, string> = { en: "English", zh: "中文" };

export let t: Words = en;

export function speak(language: Language): void {
  t = LANGUAGES[language];
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
}

export function preferred(): Language {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The word for a value of the API; one that is new is shown as it is. */
export function named(value: string | undefined): string {
  if (!value) return "";
  const found = t[value as keyof Words];
  return typeof found === "string" ? found : value.toLowerCase().replaceAll("_", " ");
}
