// Sets the colour scheme of the page before its first paint: light, dark, or the system's. A classic script rather than a module,
// because modules run after the page is parsed. It dispatches "themechange" on the document; charts then read their colours
// again.
(() => {
  const KEY = 'theme';
  const system = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;

  /** Returns the stored choice; 'system' if there is none or the browser forbids storage. */
  function chosenTheme() {
    try {
      const stored = localStorage.getItem(KEY);
      return ['light', 'dark'].includes(stored) ? stored : 'system';
    } catch {
      return 'system';
    }
  }

  function storeChoice(choice) {
    try {
      if (choice === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, choice);
    } catch { /* the choice lasts until the page is left */ }
  }

  function apply(choice) {
    const theme = choice !== 'system' ? choice : system.matches ? 'dark' : 'light';
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    root.style.colorScheme = theme;
    document.dispatchEvent(new Event('themechange'));
  }

  let choice = chosenTheme();
  const selectButton = () => {
    const button = document.querySelector(`#theme [value="${choice}"]`);
    if (button) button.checked = true;
  };
  apply(choice);
  system.addEventListener('change', () => apply(choice));
  document.addEventListener('change', ({ target }) => {
    if (!target.closest('#theme')) return;
    choice = target.value;
    storeChoice(choice);
    apply(choice);
  });
  addEventListener('storage', ({ key }) => { // another tab has changed the choice
    if (key !== KEY && key !== null) return;
    choice = chosenTheme();
    selectButton();
    apply(choice);
  });
  document.addEventListener('DOMContentLoaded', selectButton);
})();
