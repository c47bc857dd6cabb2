import java.net.URI;
import java.time.Duration;
import java.util.Map;
import org.openqa.selenium.By;
import org.openqa.selenium.WebDriver;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.remote.RemoteWebDriver;

/** Selenium's first script on a session: java -cp 'lib/*' First.java http://user:KEY@host/wd/hub PAGE */
public class First {
  public static void main(String[] args) throws Exception {
    ChromeOptions options = new ChromeOptions();
    options.setCapability("bss:options", Map.of("session_name", "by-java"));
    WebDriver driver = new RemoteWebDriver(URI.create(args[0]).toURL(), options);
    try {
      driver.get(args[1]);
      System.out.println(driver.getTitle());
      driver.manage().timeouts().implicitlyWait(Duration.ofSeconds(10));
      driver.findElement(By.name("my-text")).sendKeys("Selenium");
      driver.findElement(By.cssSelector("button")).click();
      System.out.println(driver.findElement(By.id("message")).getText());
    } finally {
      driver.quit();
    }
  }
}
